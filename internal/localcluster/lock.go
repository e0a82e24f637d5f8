package localcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// lockPoll is how often a held lock is tried again; a blocking flock could not be broken off.
const lockPoll = 100 * time.Millisecond

// Lock makes the caller the only one, among all processes, to change the cluster in dir; it waits for another and
// calls waiting once if it has to. The lock ends with the returned function, or with the process.
func Lock(ctx context.Context, dir string, waiting func()) (unlock func(), err error) {
	// The lock is beside the folder, not in it: Delete removes the folder while it is locked.
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, fmt.Errorf("make the folder of local clusters: %w", err)
	}
	return lockFile(ctx, filepath.Clean(dir)+".lock", waiting)
}

// lockFile takes an advisory lock on path, which it makes if need be and never removes: a removed file could be locked
// by one process and made anew by another.
func lockFile(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for isFirst := true; ; isFirst = false {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			_ = file.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if isFirst {
			waiting()
		}
		select {
		case <-ctx.Done():
			_ = file.Close()
			return nil, ctx.Err()
		case <-time.After(lockPoll):
		}
	}
}
