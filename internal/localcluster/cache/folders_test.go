package cache_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"hekla.sh/hekla/internal/localcluster/cache"
)

// toLock names the file that a child process of these tests locks.
const toLock = "HEKLA_TEST_LOCK"

func TestMain(m *testing.M) {
	path := os.Getenv(toLock)
	if path == "" {
		os.Exit(m.Run())
	}
	if _, err := cache.Lock(context.Background(), path, func() {}); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("locked")
	_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed
}

// One process at a time downloads into a folder.
func ExampleLock() {
	base, err := os.MkdirTemp("", "cache")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(base) }()
	path := filepath.Join(base, "downloads.lock")
	unlock, err := cache.Lock(context.Background(), path, func() { fmt.Println("another process downloads") })
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("this process downloads")
	unlock()
	// Output: this process downloads
}

func TestFoldersAreInTheCacheOfTheUser(t *testing.T) {
	base := t.TempDir()
	t.Setenv("HOME", base)
	t.Setenv("XDG_CACHE_HOME", base)
	user, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := cache.Dir("binaries", "v1"); err != nil || got != filepath.Join(user, "hekla", "binaries", "v1") {
		t.Errorf("the folder is %q, %v", got, err)
	}
	t.Setenv("HOME", "")
	t.Setenv("XDG_CACHE_HOME", "")
	if got, err := cache.Dir("binaries"); err == nil {
		t.Errorf("a user without a home has the folder %q", got)
	}
}

func TestALockIsHeldByOneUntilItIsUnlocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := cache.Lock(t.Context(), path, func() { t.Error("the first waits") })
	if err != nil {
		t.Fatal(err)
	}
	made, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	waits := make(chan struct{}, 10)
	hasLocked := make(chan error, 1)
	go func() {
		unlock, err := cache.Lock(t.Context(), path, func() { waits <- struct{}{} })
		if err == nil {
			unlock()
		}
		hasLocked <- err
	}()
	select {
	case <-waits:
	case err := <-hasLocked:
		t.Fatalf("the second did not wait for the first: %v", err)
	}
	select {
	case err := <-hasLocked:
		t.Fatalf("the second had the lock while the first held it: %v", err)
	case <-time.After(300 * time.Millisecond): // it has tried several times
	}
	unlock()
	if err := <-hasLocked; err != nil {
		t.Fatal(err)
	}
	if len(waits) > 0 {
		t.Error("it said more than once that it waits")
	}
	if now, err := os.Stat(path); err != nil || !os.SameFile(made, now) {
		t.Errorf("the file of the lock is not the same any more: %v", err)
	}
}

func TestWaitingForALockCanBeCancelled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := cache.Lock(t.Context(), path, func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := cache.Lock(ctx, path, cancel); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}

func TestALockEndsWithAProcessThatIsKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), toLock+"="+path)
	stdin, err1 := child.StdinPipe() // it stays open, so that the child stays
	stdout, err2 := child.StdoutPipe()
	if err := errors.Join(err1, err2, child.Start()); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stdin.Close() }()
	if said, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || said != "locked\n" {
		t.Fatalf("the child says %q, %v", said, err)
	}
	hasWaited := false
	unlock, err := cache.Lock(t.Context(), path, func() {
		hasWaited = true
		if err := child.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = child.Wait()
	})
	if err != nil || !hasWaited {
		t.Fatalf("the lock of the child was taken after waiting: %v, %v", hasWaited, err)
	}
	unlock()
}
