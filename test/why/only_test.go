package why

import "io/fs"

// only is a folder of which one file is seen.
type only struct {
	fs.FS
	name string
}

// ReadDir lists that file alone.
func (o only) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(o.FS, name)
	for _, entry := range entries {
		if entry.Name() == o.name {
			return []fs.DirEntry{entry}, err
		}
	}
	return nil, err
}
