package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// platforms are those of the image.
var platforms = []v1.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64"}}

// labels tell what the image is, in the words of the OCI specification.
func (s *source) labels() map[string]string {
	labels := map[string]string{
		"org.opencontainers.image.title":       "hekla",
		"org.opencontainers.image.description": "A batch scheduler for Kubernetes that takes Volcano's objects and configuration",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.version":     s.version,
		"org.opencontainers.image.created":     s.time.Format("2006-01-02T15:04:05Z07:00"),
	}
	if s.revision != "" {
		labels["org.opencontainers.image.revision"] = s.revision
	}
	return labels
}

// image is the image of one platform: one layer with all files.
func (s *source) image(files imageFiles, platform v1.Platform) (v1.Image, error) {
	entries := files.entries()
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		reader, writer := io.Pipe()
		go func() { writer.CloseWithError(writeTar(writer, entries, s.time)) }()
		return reader, nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.Append(base, mutate.Addendum{Layer: layer, MediaType: types.OCILayer,
		History: v1.History{Created: v1.Time{Time: s.time}, CreatedBy: "make image"}})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = platform.OS, platform.Architecture, v1.Time{Time: s.time}
	config.Config = v1.Config{
		Entrypoint: []string{"/hekla"}, User: user, WorkingDir: "/", Labels: s.labels(),
		Env: []string{"PATH=/", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"},
	}
	return mutate.ConfigFile(image, config)
}

// index puts the images of platforms together.
func (s *source) index(images map[string]v1.Image) v1.ImageIndex {
	index := v1.ImageIndex(mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	for _, platform := range platforms {
		if image := images[platform.Architecture]; image != nil {
			index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &platform}})
		}
	}
	return mutate.Annotations(index, s.labels()).(v1.ImageIndex)
}

// writeImage builds the programs and writes the image.
func (o *options) writeImage(ctx context.Context) error {
	work, err := os.MkdirTemp("", "hekla-image-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }() // left over in a folder for temporary files, at worst
	executables := map[string]map[string]string{}
	for _, platform := range platforms {
		built, err := o.source.buildAll(ctx, programs, platform, filepath.Join(work, platform.Architecture))
		if err != nil {
			return err
		}
		executables[platform.Architecture] = built
	}
	return o.packImage(executables)
}

// packImage writes the image of executables, by architecture and name: as an OCI layout in a directory and as an
// archive of that, and for each platform as an archive that every docker loads.
func (o *options) packImage(executables map[string]map[string]string) error {
	reference, err := name.NewTag(o.name)
	if err != nil {
		return fmt.Errorf("--name=%s: %w", o.name, err)
	}
	images := map[string]v1.Image{}
	for architecture, built := range executables {
		image, err := o.source.image(imageFiles{built, strings.Fields(o.links)}, v1.Platform{OS: "linux", Architecture: architecture})
		if err != nil {
			return err
		}
		images[architecture] = image
	}
	folder := filepath.Join(o.out, "image")
	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o755)); err != nil {
		return err
	}
	path, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	index := o.source.index(images)
	// containerd names the image after the first, others after the second.
	annotations := map[string]string{"io.containerd.image.name": reference.Name(), "org.opencontainers.image.ref.name": reference.TagStr()}
	if err := path.AppendIndex(index, layout.WithAnnotations(annotations)); err != nil {
		return err
	}
	entries, err := folderEntries(folder, "")
	if err != nil {
		return err
	}
	if err := writeFile(filepath.Join(o.out, "image.tar"), func(to io.Writer) error { return writeTar(to, entries, o.source.time) }); err != nil {
		return err
	}
	for architecture, image := range images {
		file := filepath.Join(o.out, "image-linux-"+architecture+".tar")
		if err := writeFile(file, func(to io.Writer) error { return tarball.Write(reference, image, to) }); err != nil {
			return err
		}
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	fmt.Printf("Image %s: %s\n", o.name, digest)
	return o.writePayload(digest)
}

// push sends the image that was written into a directory to its registry.
func push(ctx context.Context, out, to string) error {
	reference, err := name.NewTag(to)
	if err != nil {
		return fmt.Errorf("--name=%s: %w", to, err)
	}
	index, descriptor, err := writtenImage(out)
	if err != nil {
		return err
	}
	if err := remote.WriteIndex(reference, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return err
	}
	fmt.Printf("Pushed %s@%s\n", to, descriptor.Digest)
	return pushSignature(ctx, out, reference, descriptor.Digest)
}

// writeFile writes a file as a function says.
func writeFile(path string, write func(io.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}

// walk calls a function with the name and the path of each file in a folder.
func walk(folder string, visit func(name, file string)) error {
	return filepath.WalkDir(folder, func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, file)
		visit(filepath.ToSlash(name), file)
		return err
	})
}
