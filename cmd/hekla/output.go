package main

import (
	"encoding/json"
	"fmt"
	"io"

	"hekla.sh/hekla/internal/audit"
)

// checkOutput fails if a value of --output is neither text nor json.
func checkOutput(output string) error {
	if output != "text" && output != "json" {
		return fmt.Errorf("--output: %q is neither text nor json", output)
	}
	return nil
}

// writeAs writes a report as JSON, or as text by a function, as --output says.
func writeAs(out io.Writer, output string, report any, text func(io.Writer) error) error {
	if output == "text" {
		return text(out)
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(report)
}

// unreadable is the error of what could not be done, such as a log that could not be read.
type unreadable struct{ error }

func (unreadable) ExitCode() int { return 2 }

// violated is the error of a report with violations.
type violated int

func (v violated) Error() string { return fmt.Sprintf("%d violations", int(v)) }

// violatedBy is the error for the violations of a report, nil if there are none.
func violatedBy(found []audit.Violation) error {
	if len(found) == 0 {
		return nil
	}
	return violated(len(found))
}
