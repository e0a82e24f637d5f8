package testbed

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"golang.org/x/mod/modfile"

	root "hekla.sh/hekla"
)

// About is on what and with what it was measured.
type About struct {
	Machine  Machine  `json:"machine"`
	Versions Versions `json:"versions"`
	// Processes are those of the cluster, which run in all measurements.
	Processes []string `json:"processes"`
}

// Machine is where it was measured.
type Machine struct {
	CPUs        int    `json:"cpus"`
	MemoryBytes uint64 `json:"memoryBytes"`
	OS          string `json:"os"`
	Arch        string `json:"arch"`
	Kernel      string `json:"kernel"`
}

// Versions are those of the programs that took part.
type Versions struct {
	Hekla      string `json:"hekla"`
	Go         string `json:"go"`
	Kubernetes string `json:"kubernetes"`
	Etcd       string `json:"etcd"`
	Kwok       string `json:"kwok"`
}

// Lines are the machine and the versions as lines of text.
func (a *About) Lines() []string {
	return []string{
		fmt.Sprintf("Machine\t%d cores, %.0f GiB", a.Machine.CPUs, float64(a.Machine.MemoryBytes)/(1<<30)),
		fmt.Sprintf("Versions\tHekla %s, Kubernetes %s, etcd %s, kwok %s, %s", a.Versions.Hekla, a.Versions.Kubernetes, a.Versions.Etcd,
			a.Versions.Kwok, a.Versions.Go),
	}
}

// about reads them.
func (t *Testbed) about() (About, error) {
	var a About
	for _, process := range t.controlPlane {
		a.Processes = append(a.Processes, process.Name)
	}
	memory, err := t.proc.Meminfo()
	if err != nil {
		return About{}, fmt.Errorf("memory of the machine: %w", err)
	}
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return About{}, fmt.Errorf("version of the kernel: %w", err)
	}
	a.Machine = Machine{CPUs: runtime.NumCPU(), OS: runtime.GOOS, Arch: runtime.GOARCH, Kernel: strings.TrimSpace(string(kernel))}
	if memory.MemTotalBytes != nil {
		a.Machine.MemoryBytes = *memory.MemTotalBytes
	}
	server, err := t.Clients.Core.Discovery().ServerVersion()
	if err != nil {
		return About{}, fmt.Errorf("version of the API server: %w", err)
	}
	a.Versions = Versions{Hekla: t.Version, Go: runtime.Version(), Kubernetes: server.GitVersion}
	requirements, err := modfile.Parse("go.mod", root.GoMod, nil)
	if err != nil {
		return About{}, fmt.Errorf("the embedded go.mod: %w", err)
	}
	for _, require := range requirements.Require {
		switch require.Mod.Path {
		case "go.etcd.io/etcd/server/v3":
			a.Versions.Etcd = require.Mod.Version
		case "sigs.k8s.io/kwok":
			a.Versions.Kwok = require.Mod.Version
		}
	}
	return a, nil
}
