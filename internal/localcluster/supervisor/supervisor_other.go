//go:build !linux

package supervisor

import "syscall"

// diesWithParent cannot be had here: a program whose supervisor is killed goes on.
func diesWithParent() *syscall.SysProcAttr { return nil }
