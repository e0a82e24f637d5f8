package supervisor

import "syscall"

// diesWithParent lets the kernel end the program if its supervisor is killed.
func diesWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
