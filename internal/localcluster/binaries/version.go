package binaries

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"

	"hekla.sh/hekla/pkg/apis/bounds"
)

// buildModule is what the module is called that requires what is built.
const buildModule = "hekla.sh/local-cluster-build"

// stagingFolder is where Kubernetes has the modules that it publishes by themselves, with version v0.X.Y for v1.X.Y.
const stagingFolder = "./staging/src/"

// ofKubernetes are the programs that are of a version of Kubernetes.
func ofKubernetes() []source {
	return slices.DeleteFunc(slices.Clone(sources), func(s source) bool { return !strings.HasPrefix(s.importPath, kubernetesModule+"/") })
}

// canonical completes a version to the form that Go's modules have, such as v1.35.1.
func canonical(version string) (string, error) {
	given := version
	if !strings.HasPrefix(version, "v") {
		version = "v" + version
	}
	if semver.Canonical(version) != version || semver.Major(version) != "v1" {
		return "", fmt.Errorf("%q is no version of Kubernetes such as v1.35.1", given)
	}
	return version, nil
}

// newVersionRecipe is a recipe for the programs of one version of Kubernetes. What it requires is looked up when it is
// built.
func newVersionRecipe(version string) *recipe {
	r := &recipe{sources: ofKubernetes(), modules: "-mod=mod", isLookedUp: true, kubernetes: version, ldflags: ldflags(version)}
	hash := sha256.New()
	for _, source := range r.sources {
		_, _ = fmt.Fprintln(hash, source.importPath)
	}
	_, _ = fmt.Fprintln(hash, r.ldflags, runtime.Version())
	r.key = "kubernetes-" + version + "-" + hex.EncodeToString(hash.Sum(nil))[:16]
	return r
}

// require looks up what the version of Kubernetes requires, and writes the requirements of the build.
func (r *recipe) require(ctx context.Context, work string, meter *meter) error {
	if err := os.WriteFile(filepath.Join(work, "go.mod"), []byte("module "+buildModule+"\n"), 0o644); err != nil {
		return fmt.Errorf("write go.mod of the build: %w", err)
	}
	said, err := runGo(ctx, work, meter, "mod", "download", "-json", kubernetesModule+"@"+r.kubernetes)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var module struct{ GoMod, Error string }
	if problem := bounds.UnmarshalJSON([]byte(said), &module); problem != nil || module.Error != "" || err != nil {
		reason := module.Error
		if reason == "" {
			reason = fmt.Sprint(err)
		}
		return fmt.Errorf("look up %s: %s", kubernetesModule, reason)
	}
	own, err := os.ReadFile(module.GoMod)
	if err != nil {
		return fmt.Errorf("read go.mod of Kubernetes %s: %w", r.kubernetes, err)
	}
	r.goMod, err = requirements(own, r.kubernetes)
	return err
}

// requirements are the go.mod of a build of Kubernetes. The replacements in its own go.mod are folders, which only a
// checkout has; here they are the versions that were published with it.
func requirements(own []byte, version string) ([]byte, error) {
	theirs, err := modfile.Parse("go.mod", own, nil)
	if err != nil {
		return nil, fmt.Errorf("go.mod of Kubernetes %s: %w", version, err)
	}
	file := new(modfile.File)
	if err := file.AddModuleStmt(buildModule); err != nil {
		return nil, err
	}
	if theirs.Go != nil {
		if err := file.AddGoStmt(theirs.Go.Version); err != nil {
			return nil, err
		}
	}
	for _, setting := range theirs.Godebug {
		if err := file.AddGodebug(setting.Key, setting.Value); err != nil {
			return nil, err
		}
	}
	if err := file.AddRequire(kubernetesModule, version); err != nil {
		return nil, err
	}
	published := "v0" + strings.TrimPrefix(version, "v1")
	for _, replace := range theirs.Replace {
		if strings.HasPrefix(replace.New.Path, stagingFolder) {
			if err := file.AddReplace(replace.Old.Path, "", replace.Old.Path, published); err != nil {
				return nil, err
			}
		}
	}
	return file.Format()
}
