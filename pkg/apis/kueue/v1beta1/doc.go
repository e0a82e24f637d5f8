// Package v1beta1 has the kinds of the API group kueue.x-k8s.io under their older version.
//
// The types are those of package v1beta2, by alias: one schema with the fields of both versions serves both. So an
// object of either version is read into one type, in the spelling in which it was written; package settings reads both
// spellings.
//
// A program registers one of the two versions in the scheme that it writes with, since a Go type is written in one
// version. The clients of this project write v1beta2. AddToScheme is for schemes that only read.
package v1beta1
