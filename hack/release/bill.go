package main

import (
	"debug/buildinfo"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"runtime/debug"
	"slices"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// writeBill writes the bill of materials of executables: the modules that the linker says are in any of them.
func (o *options) writeBill(executables map[string]string) error {
	bill, err := o.source.bill(executables)
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(o.out, "hekla-"+o.source.version+".cdx.json"), func(to io.Writer) error {
		return cyclonedx.NewBOMEncoder(to, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bill)
	})
}

// bill names the modules of executables with their versions and checksums, and the standard library.
func (s *source) bill(executables map[string]string) (*cyclonedx.BOM, error) {
	modules := map[string]*debug.Module{}
	main, toolchain := "", ""
	for _, name := range slices.Sorted(maps.Keys(executables)) {
		info, err := buildinfo.ReadFile(executables[name])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		main, toolchain = info.Main.Path, info.GoVersion
		for _, module := range info.Deps {
			if module.Replace != nil {
				module = module.Replace
			}
			modules[module.Path] = module
		}
	}
	component := func(kind cyclonedx.ComponentType, path, version, sum string) cyclonedx.Component {
		url := "pkg:golang/" + path + "@" + version
		c := cyclonedx.Component{BOMRef: url, Type: kind, Name: path, Version: version, PackageURL: url}
		if sum != "" {
			c.Properties = &[]cyclonedx.Property{{Name: "go:sum", Value: sum}}
		}
		return c
	}
	subject := component(cyclonedx.ComponentTypeApplication, main, s.version, "")
	components := []cyclonedx.Component{component(cyclonedx.ComponentTypeLibrary, "stdlib", toolchain, "")}
	for _, path := range slices.Sorted(maps.Keys(modules)) {
		components = append(components, component(cyclonedx.ComponentTypeLibrary, path, modules[path].Version, modules[path].Sum))
	}
	var parts []string
	for _, c := range components {
		parts = append(parts, c.BOMRef)
	}
	bill := cyclonedx.NewBOM()
	bill.Metadata = &cyclonedx.Metadata{Timestamp: s.time.Format("2006-01-02T15:04:05Z"), Component: &subject}
	bill.Components = &components
	bill.Dependencies = &[]cyclonedx.Dependency{{Ref: subject.BOMRef, Dependencies: &parts}}
	return bill, nil
}
