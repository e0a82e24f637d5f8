package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// writeChartIndex writes index.yaml, which makes a chart repository of the directory where the release is published.
// The address of the chart is relative to it, so that it may be anywhere.
func (o *options) writeChartIndex(version string) error {
	file := "hekla-" + version + ".tgz"
	chart, err := chartOf(filepath.Join(o.out, file))
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	sum, err := checksum(filepath.Join(o.out, file))
	if err != nil {
		return err
	}
	at := o.source.time.Format("2006-01-02T15:04:05Z")
	chart["created"], chart["digest"], chart["urls"] = at, sum, []string{file}
	text, err := yaml.Marshal(map[string]any{"apiVersion": "v1", "generated": at, "entries": map[string]any{"hekla": []any{chart}}})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(o.out, "index.yaml"), text, 0o644) //nolint:gosec // all users may read it
}

// chartOf reads Chart.yaml of a packed chart.
func chartOf(archive string) (map[string]any, error) {
	file, err := os.Open(archive)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		return nil, err
	}
	for reader := tar.NewReader(unpacked); ; {
		header, err := reader.Next()
		if err != nil {
			return nil, fmt.Errorf("it has no Chart.yaml: %w", err)
		}
		if path.Base(header.Name) != "Chart.yaml" || strings.Count(header.Name, "/") != 1 {
			continue
		}
		text, err := io.ReadAll(reader)
		if err != nil {
			return nil, err
		}
		chart := map[string]any{}
		return chart, yaml.Unmarshal(text, &chart)
	}
}

// writeKrew writes the manifest by which krew installs hekla as a plugin of kubectl, from where the release will be
// published.
func (o *options) writeKrew() error {
	var offers []any
	for _, platform := range append(platforms[:len(platforms):len(platforms)], clientPlatforms...) {
		folder := fmt.Sprintf("hekla-%s-%s-%s", o.source.version, platform.OS, platform.Architecture)
		sum, err := checksum(filepath.Join(o.out, folder+".tar.gz"))
		if err != nil {
			return err
		}
		offers = append(offers, map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"os": platform.OS, "arch": platform.Architecture}},
			"uri":      strings.TrimSuffix(o.url, "/") + "/" + folder + ".tar.gz", "sha256": sum, "bin": "kubectl-hekla",
			// krew links what bin names, and the program knows by the name of the link what it is.
			"files": []any{map[string]any{"from": folder + "/hekla", "to": "kubectl-hekla"}, map[string]any{"from": folder + "/LICENSE", "to": "."}},
		})
	}
	text, err := yaml.Marshal(map[string]any{"apiVersion": "krew.googlecontainertools.github.com/v1alpha2", "kind": "Plugin", "metadata": map[string]any{"name": "hekla"},
		"spec": map[string]any{
			"version": "v" + strings.TrimPrefix(o.source.version, "v"), "homepage": "https://hekla.sh", "shortDescription": "Say why batch jobs wait, and what would help",
			"description": "Lists the jobs of Hekla, Volcano and Kueue, says why they wait, when they start and what would help, and what would happen if a job were submitted.",
			"platforms":   offers,
		}})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(o.out, "krew.yaml"), text, 0o644) //nolint:gosec // all users may read it
}

// unpackImage writes the layout that an archive holds into a directory.
func unpackImage(archive, folder string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	for reader := tar.NewReader(file); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if !filepath.IsLocal(header.Name) {
			return &fs.PathError{Op: "unpack", Path: header.Name, Err: errors.New("is outside of the directory")}
		}
		into := filepath.Join(folder, filepath.FromSlash(header.Name))
		if err := os.MkdirAll(filepath.Dir(into), 0o755); err != nil {
			return err
		}
		if err := writeFile(into, func(to io.Writer) error {
			_, err := io.Copy(to, reader) //nolint:gosec // an image that was written here
			return err
		}); err != nil {
			return err
		}
	}
}
