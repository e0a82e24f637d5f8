package binaries

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// kubernetesModule is the module whose version the built programs report as their own.
const kubernetesModule = "k8s.io/kubernetes"

// source is a program, by the package that it is built from.
type source struct{ name, importPath, builtAs string }

// sources lists the packages that are built. The executable is called as Go would call it unless builtAs says what Go
// does call it.
var sources = []source{
	{name: "etcd", importPath: "go.etcd.io/etcd/server/v3", builtAs: "server"},
	{name: "kube-apiserver", importPath: "k8s.io/kubernetes/cmd/kube-apiserver"},
	{name: "kube-controller-manager", importPath: "k8s.io/kubernetes/cmd/kube-controller-manager"},
	{name: "kubectl", importPath: "k8s.io/kubernetes/cmd/kubectl"},
	{name: "kwok", importPath: "sigs.k8s.io/kwok/cmd/kwok"},
}

// recipe is all that decides what a build of the programs gives.
type recipe struct {
	sources    []source
	modules    string // the flag of the go command that says whether requirements may be added
	isLookedUp bool   // goMod and goSum are found out when it is built
	goMod      []byte // the requirements of this module under another module name
	goSum      []byte
	kubernetes string // for example v1.36.3
	ldflags    string
	key        string // names the build in the cache
}

// newRecipe derives the recipe from the text of a go.mod and its go.sum.
//
// The key covers the versions, not the text: go.mod changes with every import that turns from indirect to direct, and
// each new key costs a build and a third of a gigabyte.
func newRecipe(goMod, goSum []byte) (*recipe, error) {
	file, err := modfile.Parse("go.mod", goMod, nil)
	if err != nil {
		return nil, fmt.Errorf("the embedded go.mod: %w", err)
	}
	var versions []string
	result := &recipe{goSum: goSum, sources: sources, modules: "-mod=readonly"}
	for _, require := range file.Require {
		versions = append(versions, require.Mod.String())
		if require.Mod.Path == kubernetesModule {
			result.kubernetes = require.Mod.Version
		}
	}
	for _, replace := range file.Replace {
		versions = append(versions, replace.Old.String()+" => "+replace.New.String())
	}
	if !semver.IsValid(result.kubernetes) {
		return nil, fmt.Errorf("the embedded go.mod requires no version of %s, so there is nothing to build a cluster from", kubernetesModule)
	}
	result.ldflags = ldflags(result.kubernetes)

	if err := file.AddModuleStmt(buildModule); err != nil {
		return nil, fmt.Errorf("rename the module of the embedded go.mod: %w", err)
	}
	if result.goMod, err = file.Format(); err != nil {
		return nil, fmt.Errorf("write the go.mod of the build: %w", err)
	}

	slices.Sort(versions)
	hash := sha256.New()
	for _, line := range versions {
		_, _ = io.WriteString(hash, line+"\n")
	}
	for _, source := range sources {
		_, _ = io.WriteString(hash, source.importPath+"\n")
	}
	_, _ = io.WriteString(hash, result.ldflags+"\n"+runtime.Version()+"\n")
	result.key = hex.EncodeToString(hash.Sum(nil))[:16]
	return result, nil
}

// ldflags stamps the version; without it clients and servers take each other for v0.0.0 and refuse to talk.
func ldflags(kubernetes string) string {
	majorMinor := strings.TrimPrefix(semver.MajorMinor(kubernetes), "v")
	major, minor, _ := strings.Cut(majorMinor, ".")
	const prefix = " -X k8s.io/component-base/version."
	return "-s -w" + prefix + "gitVersion=" + kubernetes + prefix + "gitMajor=" + major + prefix + "gitMinor=" + minor
}

// importPaths returns what to hand to the go command.
func (r *recipe) importPaths() []string {
	paths := make([]string, 0, len(r.sources))
	for _, source := range r.sources {
		paths = append(paths, source.importPath)
	}
	return paths
}
