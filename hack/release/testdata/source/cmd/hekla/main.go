package main

import (
	"fmt"
	"os"
	"path/filepath"

	"hekla.sh/hekla/internal/version"
)

func main() {
	switch {
	case len(os.Args) == 3 && os.Args[1] == "man":
		page := fmt.Sprintf("the page of %s, as of %s\n", version.Version, os.Getenv("SOURCE_DATE_EPOCH"))
		if err := os.WriteFile(filepath.Join(os.Args[2], "hekla.1"), []byte(page), 0o644); err != nil {
			panic(err)
		}
	case len(os.Args) == 3 && os.Args[1] == "completion":
		fmt.Println("completion for", os.Args[2])
	default:
		println("hekla", version.Version)
	}
}
