package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
)

// What the statement calls itself, this program as a builder, and where the sources are.
const (
	statementType  = "https://in-toto.io/Statement/v1"
	provenanceType = "https://slsa.dev/provenance/v1"
	builder        = "https://hekla.sh/hekla/hack/release"
	repository     = "git+https://hekla.sh/hekla"
)

// statement is a provenance as in-toto and SLSA define it: which files were made of what, and how. It is not signed: it
// says what a build has to repeat, and who signs it vouches for it.
type statement struct {
	Type          string     `json:"_type"`
	Subject       []artifact `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     provenance `json:"predicate"`
}

// artifact is a file, or a source, by its digests.
type artifact struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest,omitempty"`
}

type provenance struct {
	BuildDefinition struct {
		BuildType            string            `json:"buildType"`
		ExternalParameters   map[string]string `json:"externalParameters"`
		InternalParameters   map[string]any    `json:"internalParameters"`
		ResolvedDependencies []artifact        `json:"resolvedDependencies,omitempty"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Builder struct {
			ID string `json:"id"`
		} `json:"builder"`
	} `json:"runDetails"`
}

// writeProvenance writes the provenance of all files that are in the directory. executable is one of the programs, which
// knows by which Go it was built.
func (o *options) writeProvenance(executable string) error {
	info, err := buildinfo.ReadFile(executable)
	if err != nil {
		return fmt.Errorf("%s: %w", executable, err)
	}
	s := statement{Type: statementType, PredicateType: provenanceType}
	sums, err := checksums(o.out)
	if err != nil {
		return err
	}
	for _, sum := range sums {
		s.Subject = append(s.Subject, artifact{Name: sum.name, Digest: map[string]string{"sha256": sum.sum}})
	}
	build := &s.Predicate.BuildDefinition
	build.BuildType = builder
	build.ExternalParameters = map[string]string{"version": o.source.version, "image": o.name, "links": o.links, "url": o.url}
	build.InternalParameters = map[string]any{"go": info.GoVersion, "build": buildArguments(o.source.version)}
	switch {
	case o.source.isModified:
		build.InternalParameters["modified"] = true // no commit has what was built
	case o.source.revision != "":
		build.ResolvedDependencies = []artifact{{URI: repository, Digest: map[string]string{"gitCommit": o.source.revision}}}
	}
	s.Predicate.RunDetails.Builder.ID = builder
	return writeFile(filepath.Join(o.out, "hekla-"+o.source.version+".provenance.json"), func(to io.Writer) error {
		encoder := json.NewEncoder(to)
		encoder.SetIndent("", "  ")
		return encoder.Encode(s)
	})
}
