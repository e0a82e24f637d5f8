package blocks

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Block is a block of commands on a page.
type Block struct {
	Page     string // its path below the root
	Line     int    // of its first line
	Commands string
	Mark
}

// Mark says how a block is tested. It stands in the page, as a comment: right above a block it is of the block, and
// above other text it is of the blocks that follow up to the next title of the level of the last one.
type Mark struct {
	// NotRun is why no test runs the block: `not run: REASON`.
	NotRun string
	// RunBy is the test that runs the block: `run by TestName`.
	RunBy string
}

var (
	mark  = regexp.MustCompile(`^<!-- (not run: |run by )(.*?) ?-->$`)
	title = regexp.MustCompile(`^(#+) `)
	test  = regexp.MustCompile(`^Test\w+$`)
)

// add adds what a line says, and reports whether it is a mark.
func (m *Mark) add(line string) (isMark bool, err error) {
	match := mark.FindStringSubmatch(line)
	switch {
	case match == nil:
		return false, nil
	case *m != Mark{}:
		return true, fmt.Errorf("%q is a second mark", line)
	case match[1] == "not run: ":
		m.NotRun = match[2]
	case !test.MatchString(match[2]):
		return true, fmt.Errorf("%q is no test", match[2])
	default:
		m.RunBy = match[2]
	}
	if match[2] == "" {
		return true, fmt.Errorf("%q has no reason", line)
	}
	return true, nil
}

// section is a part of a page below a title.
type section struct {
	level int
	Mark
}

// read reads the blocks of commands of a page.
func read(page, text string) (blocks []Block, err error) {
	sections, above := []section{{}}, Mark{}
	begin, kind, lines := 0, "", []string(nil) // of the block that is open
	for i, line := range strings.Split(text, "\n") {
		fence, isFence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case begin > 0 && isFence:
			commands := typed(kind, lines)
			switch of := above; {
			case commands == "" && above != Mark{}:
				return nil, fmt.Errorf("%s:%d: a mark stands above a block without commands", page, begin)
			case commands != "":
				if above == (Mark{}) {
					of = sections[len(sections)-1].Mark
				}
				blocks = append(blocks, Block{Page: page, Line: begin + 1, Commands: commands, Mark: of})
			}
			begin, above = 0, Mark{}
		case begin > 0:
			lines = append(lines, line)
		case isFence:
			begin, kind, lines = i+1, fence, nil
		case strings.TrimSpace(line) != "":
			isMark, err := above.add(line)
			if err != nil {
				return nil, fmt.Errorf("%s:%d: %w", page, i+1, err)
			}
			if isMark {
				continue
			}
			if above != (Mark{}) {
				sections[len(sections)-1].Mark, above = above, Mark{}
			}
			sections = below(sections, line)
		}
	}
	return blocks, nil
}

// below begins a section if a line is a title. It has the mark of the section that it is in.
func below(sections []section, line string) []section {
	match := title.FindStringSubmatch(line)
	if match == nil {
		return sections
	}
	level := len(match[1])
	sections = slices.DeleteFunc(sections, func(s section) bool { return s.level >= level })
	if len(sections) == 0 {
		sections = []section{{}}
	}
	return append(sections, section{level, sections[len(sections)-1].Mark})
}

// typed are the commands of a block: all of sh, and what follows a prompt elsewhere.
func typed(kind string, lines []string) string {
	var commands strings.Builder
	for _, line := range lines {
		command, isTyped := strings.CutPrefix(line, "$ ")
		if kind == "sh" || isTyped {
			commands.WriteString(command + "\n")
		}
	}
	return commands.String()
}

// All returns the blocks of commands of all pages below the root of the module, in the order of the pages.
func All(root string) (blocks []Block, err error) {
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "node_modules" || entry.Name() == "dist") {
			return filepath.SkipDir
		}
		if entry.IsDir() || filepath.Ext(path) != ".md" {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		found, err := read(filepath.ToSlash(relative), string(content))
		blocks = append(blocks, found...)
		return err
	})
	return blocks, err
}
