package process

import (
	"io"
	"os"

	"golang.org/x/term"
)

// TerminalOf returns the terminal that a writer is, nil if it is none, or one that can only print line after line.
func TerminalOf(w io.Writer) *os.File {
	file, isFile := w.(*os.File)
	if !isFile || !term.IsTerminal(int(file.Fd())) || os.Getenv("TERM") == "dumb" {
		return nil
	}
	return file
}
