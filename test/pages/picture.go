package pages

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"regexp"
	"strings"

	"github.com/mitchellh/go-wordwrap"
)

// The size of a picture of a terminal.
const (
	columns           = 110
	width, height     = 8.4, 19 // of a character, in pixels
	margin, firstLine = 16, 32
)

// beforeText is what stands on a line before its text: spaces, or a label and spaces.
var beforeText = regexp.MustCompile(`^ +(?:\S+(?: \S+)? {2,})?`)

// wrapped breaks lines between words, and begins each further one below the text of the first.
func wrapped(text string) (lines []string) {
	for line := range strings.Lines(strings.TrimSpace(text)) {
		line = strings.TrimRight(line, "\n")
		before := beforeText.FindString(line)
		for i, part := range strings.Split(wordwrap.WrapString(line[len(before):], uint(columns-len(before))), "\n") {
			if i == 0 {
				lines = append(lines, before+part)
			} else {
				lines = append(lines, strings.Repeat(" ", len(before))+part)
			}
		}
	}
	return lines
}

// Picture draws what a terminal shows as SVG, whose text can be read back.
func Picture(text string) []byte {
	lines := wrapped(text)
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" font-family="ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="14">`,
		columns*width+2*margin, firstLine+len(lines)*height)
	out.WriteString("\n<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#16191d\"/>\n")
	for i, line := range lines {
		look := `fill="#d5d9de"`
		if strings.HasPrefix(line, "$ ") {
			look = `fill="#7ee787" font-weight="bold"`
		}
		fmt.Fprintf(&out, `<text x="%d" y="%d" xml:space="preserve" %s>`, margin, firstLine+i*height, look)
		_ = xml.EscapeText(&out, []byte(line)) // a buffer fails never
		out.WriteString("</text>\n")
	}
	out.WriteString("</svg>\n")
	return out.Bytes()
}

// TextOf reads the lines of a picture back.
func TextOf(picture []byte) (string, error) {
	var read struct {
		Lines []string `xml:"text"`
	}
	err := xml.Unmarshal(picture, &read)
	return strings.Join(read.Lines, "\n"), err
}
