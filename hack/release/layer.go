package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is who the programs run as: the one that distroless images call nonroot.
const user = "65532:65532"

const (
	passwd = "root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/tmp:/sbin/nologin\n"
	group  = "root:x:0:\nnonroot:x:65532:\n"
)

// imageFiles are what an image holds.
type imageFiles struct {
	executables map[string]string // paths on this machine, by name
	links       []string          // other names of the program hekla
}

// entry is a file of a layer. One with neither a path nor content is a directory.
type entry struct {
	mode    int64
	path    string // where it is read from
	content []byte
	link    string
}

// entries are all files by their names in the image.
func (f imageFiles) entries() map[string]entry {
	all := map[string]entry{
		"etc/": {mode: 0o755}, "etc/ssl/": {mode: 0o755}, "etc/ssl/certs/": {mode: 0o755}, "tmp/": {mode: 0o1777},
		"etc/passwd": {mode: 0o644, content: []byte(passwd)}, "etc/group": {mode: 0o644, content: []byte(group)},
		"etc/ssl/certs/ca-certificates.crt": {mode: 0o644, content: roots()},
	}
	for name, file := range f.executables {
		all[name] = entry{mode: 0o755, path: file}
	}
	for _, name := range f.links {
		all[name] = entry{mode: 0o777, link: "hekla"}
	}
	return all
}

// roots are the authorities that are trusted for HTTPS, as Mozilla's programs trust them. Those that are trusted with
// conditions are left out, since a file of certificates cannot tell them.
func roots() []byte {
	text := &bytes.Buffer{}
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(text, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer takes all
		}
	}
	return text.Bytes()
}

// writeTar writes entries in the order of their names, all of one time and owned by root.
func writeTar(to io.Writer, entries map[string]entry, at time.Time) error {
	archive := tar.NewWriter(to)
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if err := writeEntry(archive, name, entries[name], at); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return archive.Close()
}

func writeEntry(archive *tar.Writer, name string, e entry, at time.Time) error {
	header := &tar.Header{Name: name, Mode: e.mode, ModTime: at, Format: tar.FormatPAX, Typeflag: tar.TypeReg, Size: int64(len(e.content))}
	var content io.Reader = bytes.NewReader(e.content)
	switch {
	case e.link != "":
		header.Typeflag, header.Linkname = tar.TypeSymlink, e.link
	case strings.HasSuffix(name, "/"):
		header.Typeflag = tar.TypeDir
	case e.path != "":
		file, err := os.Open(e.path)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }() // it was only read
		info, err := file.Stat()
		if err != nil {
			return err
		}
		header.Size, content = info.Size(), file
	}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err := io.Copy(archive, content)
	return err
}

// folderEntries are the files of a folder, under a name.
func folderEntries(folder, as string) (map[string]entry, error) {
	entries := map[string]entry{}
	err := walk(folder, func(name, file string) { entries[path.Join(as, name)] = entry{mode: 0o644, path: file} })
	return entries, err
}
