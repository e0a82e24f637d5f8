package localcluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"hekla.sh/hekla/internal/localcluster/cache"
)

// Lock makes the caller the only one, among all processes, to change the cluster in dir; it waits for another and
// calls waiting once if it has to. The lock ends with the returned function, or with the process.
func Lock(ctx context.Context, dir string, waiting func()) (unlock func(), err error) {
	// The lock is next to the folder, not in it: Delete removes the folder while it is locked.
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, fmt.Errorf("make the folder of local clusters: %w", err)
	}
	return cache.Lock(ctx, filepath.Clean(dir)+".lock", waiting)
}
