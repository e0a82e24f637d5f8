package main

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// semantic is a version that helm takes, with or without the v that tags begin with.
var semantic = regexp.MustCompile(`^v?(\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?)$`)

// clientPlatforms are those that the program hekla is offered for besides the platforms of the image.
var clientPlatforms = []v1.Platform{{OS: "darwin", Architecture: "amd64"}, {OS: "darwin", Architecture: "arm64"}}

// writeAll writes all that a release consists of into an empty directory.
func (o *options) writeAll(ctx context.Context) error {
	match := semantic.FindStringSubmatch(o.source.version)
	if match == nil {
		return fmt.Errorf("--version=%s: must be a semantic version such as v1.2.3", o.source.version)
	}
	if err := emptied(o.out); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "hekla-release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }() // left over in a folder for temporary files, at worst
	pages, err := o.source.writePages(ctx, filepath.Join(work, "pages"))
	if err != nil {
		return err
	}
	executables := map[string]map[string]string{}
	for _, platform := range slices.Concat(platforms, clientPlatforms) {
		all := programs
		if slices.ContainsFunc(clientPlatforms, platform.Equals) {
			all = slices.DeleteFunc(slices.Clone(programs), func(p program) bool { return p.name != "hekla" })
		}
		built, err := o.source.buildAll(ctx, all, platform, filepath.Join(work, platform.OS+"-"+platform.Architecture))
		if err != nil {
			return err
		}
		if err := o.packPrograms(built, pages, platform); err != nil {
			return err
		}
		if platform.OS == "linux" {
			executables[platform.Architecture] = built
		}
	}
	if err := o.packImage(executables); err != nil {
		return err
	}
	// The directory is in image.tar, and a release is files.
	if err := os.RemoveAll(filepath.Join(o.out, "image")); err != nil {
		return err
	}
	if err := errors.Join(o.packChart(ctx, match[1]), o.writeChartIndex(match[1])); err != nil {
		return err
	}
	if o.url != "" {
		if err := o.writeKrew(); err != nil {
			return err
		}
	}
	built := executables[platforms[0].Architecture]
	if err := errors.Join(o.writeBill(built), o.writeProvenance(built["hekla"])); err != nil {
		return err
	}
	return writeChecksums(o.out)
}

// emptied makes a directory that is empty. What stands there is removed only if it looks like what this program has
// written before.
func emptied(folder string) error {
	found, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	isOurs := func(e fs.DirEntry) bool { return e.Name() == "SHA256SUMS" || e.Name() == "image.tar" }
	if len(found) > 0 && !slices.ContainsFunc(found, isOurs) {
		return fmt.Errorf("--out=%s: is not empty, and holds no release that could be replaced", folder)
	}
	return errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o755))
}

// packPrograms writes an archive of executables, with the license, the pages of hekla and its other names.
func (o *options) packPrograms(built, pages map[string]string, platform v1.Platform) error {
	folder := fmt.Sprintf("hekla-%s-%s-%s", o.source.version, platform.OS, platform.Architecture)
	entries := map[string]entry{path.Join(folder, "LICENSE"): {mode: 0o644, path: filepath.Join(o.source.root, "LICENSE")}}
	for name, file := range built {
		entries[path.Join(folder, name)] = entry{mode: 0o755, path: file}
	}
	for name, file := range pages {
		entries[path.Join(folder, name)] = entry{mode: 0o644, path: file}
	}
	for _, name := range strings.Fields(o.links) {
		entries[path.Join(folder, name)] = entry{mode: 0o777, link: "hekla"}
	}
	return writeFile(filepath.Join(o.out, folder+".tar.gz"), func(to io.Writer) error {
		compressed := gzip.NewWriter(to)
		return errors.Join(writeTar(compressed, entries, o.source.time), compressed.Close())
	})
}

// packChart has helm write the chart. It names the image by its tag, which is the version of the build.
func (o *options) packChart(ctx context.Context, version string) error {
	out, err := filepath.Abs(o.out)
	if err != nil {
		return err
	}
	call := append(strings.Fields(o.helm), "package", o.chart, "--version="+version, "--app-version="+o.source.version, "--destination="+out)
	command := exec.CommandContext(ctx, call[0], call[1:]...)
	command.Dir = o.source.root
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("packing %s: %w\n%s", o.chart, err, output)
	}
	return nil
}

// writeChecksums writes SHA256SUMS, as sha256sum -c reads it, of all files of a directory.
func writeChecksums(folder string) error {
	sums, err := checksums(folder)
	if err != nil {
		return err
	}
	lines := make([]string, len(sums))
	for i, s := range sums {
		lines[i] = s.sum + "  " + s.name + "\n"
	}
	return os.WriteFile(filepath.Join(folder, sumsFile), []byte(strings.Join(lines, "")), 0o644) //nolint:gosec // all users may read it
}

// fileSum is a file of a directory with its SHA-256.
type fileSum struct{ name, sum string }

// checksums are those of all files of a directory, by name.
func checksums(folder string) (all []fileSum, err error) {
	var failed error
	err = walk(folder, func(name, file string) {
		sum, err := checksum(file)
		failed = errors.Join(failed, err)
		all = append(all, fileSum{name, sum})
	})
	return all, errors.Join(err, failed)
}

func checksum(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }() // it was only read
	hash := sha256.New()
	_, err = io.Copy(hash, file)
	return fmt.Sprintf("%x", hash.Sum(nil)), err
}
