package main

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// The files of signatures, as cosign reads and writes them: the signature of a file is the text of a base64 of ECDSA
// over its SHA-256, next to it. That of an image is of a payload that names its digest.
const (
	sumsFile    = "SHA256SUMS"
	payloadFile = "image.payload.json"
	ending      = ".sig"
	// payloadType and signatureKey are how a signature stands in a registry.
	payloadType  = types.MediaType("application/vnd.dev.cosign.simplesigning.v1+json")
	signatureKey = "dev.cosignproject.cosign/signature"
)

// payload is what the signature of an image is of.
type payload struct {
	Critical struct {
		Identity struct {
			Reference string `json:"docker-reference"`
		} `json:"identity"`
		Image struct {
			Digest string `json:"docker-manifest-digest"`
		} `json:"image"`
		Type string `json:"type"`
	} `json:"critical"`
	Optional map[string]string `json:"optional"`
}

// writePayload writes what the signature of the image is of.
func (o *options) writePayload(digest v1.Hash) error {
	reference, err := name.NewTag(o.name)
	if err != nil {
		return fmt.Errorf("--name=%s: %w", o.name, err)
	}
	var p payload
	p.Critical.Identity.Reference, p.Critical.Image.Digest, p.Critical.Type = reference.Context().Name(), digest.String(), "cosign container image signature"
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	// A signature that is there is of another image.
	if err := os.Remove(filepath.Join(o.out, payloadFile+ending)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.WriteFile(filepath.Join(o.out, payloadFile), text, 0o644) //nolint:gosec // all users may read it
}

// sign signs the checksums of a release, and its image.
func sign(out, keyFile string) error {
	block, err := readPEM(keyFile)
	if err != nil {
		return err
	}
	key, err := x509.ParseECPrivateKey(block)
	if err != nil {
		parsed, other := x509.ParsePKCS8PrivateKey(block)
		ec, isEC := parsed.(*ecdsa.PrivateKey)
		if other != nil || !isEC {
			return fmt.Errorf("--key=%s: must be an ECDSA private key that is not encrypted: %w", keyFile, errors.Join(err, other))
		}
		key = ec
	}
	if key.Curve != elliptic.P256() {
		return fmt.Errorf("--key=%s: its curve is %s, and cosign takes P-256", keyFile, key.Curve.Params().Name)
	}
	for _, file := range []string{sumsFile, payloadFile} {
		text, err := os.ReadFile(filepath.Join(out, file))
		if err != nil {
			return fmt.Errorf("%w: write the release first", err)
		}
		digest := sha256.Sum256(text)
		signature, err := key.Sign(nil, digest[:], crypto.SHA256) // without random numbers: the same release has the same signatures
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(out, file+ending), []byte(base64.StdEncoding.EncodeToString(signature)), 0o644); err != nil { //nolint:gosec // all users may read it
			return err
		}
	}
	return nil
}

func readPEM(file string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--key: %w", err)
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "EC PARAMETERS" { // which openssl writes first
			return block.Bytes, nil
		}
	}
	return nil, fmt.Errorf("--key=%s: is not a PEM file", file)
}

// checkRelease checks that a release is whole: all files have their checksums, the image is for each platform and has
// the digest that the payload names, and, if there is a key, that the signatures are by it.
func checkRelease(out, keyFile string) error {
	listed, err := os.ReadFile(filepath.Join(out, sumsFile))
	if err != nil {
		return err
	}
	sums, err := checksums(out)
	if err != nil {
		return err
	}
	var found []string
	for _, s := range sums {
		if isOfRelease(s.name) {
			found = append(found, s.sum+"  "+s.name)
		}
	}
	want := strings.Split(strings.TrimSpace(string(listed)), "\n")
	for _, line := range want {
		if !slices.Contains(found, line) {
			return fmt.Errorf("%s: %q is not true of what is there", sumsFile, line)
		}
	}
	if len(found) != len(want) {
		return fmt.Errorf("%s: names %d files, and there are %d", sumsFile, len(want), len(found))
	}
	if err := checkImage(out); err != nil {
		return err
	}
	if keyFile == "" {
		return nil
	}
	return checkSignatures(out, keyFile)
}

func checkImage(out string) error {
	text, err := os.ReadFile(filepath.Join(out, payloadFile))
	if err != nil {
		return err
	}
	var p payload
	if err := json.Unmarshal(text, &p); err != nil {
		return fmt.Errorf("%s: %w", payloadFile, err)
	}
	index, descriptor, err := writtenImage(out)
	if err != nil {
		return err
	}
	if got := descriptor.Digest.String(); got != p.Critical.Image.Digest {
		return fmt.Errorf("%s: names %s, and the image is %s", payloadFile, p.Critical.Image.Digest, got)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return err
	}
	for _, platform := range platforms {
		if !slices.ContainsFunc(manifest.Manifests, func(d v1.Descriptor) bool { return d.Platform != nil && d.Platform.Equals(platform) }) {
			return fmt.Errorf("image.tar: has no image for %s", platform)
		}
	}
	return nil
}

func checkSignatures(out, keyFile string) error {
	block, err := readPEM(keyFile)
	if err != nil {
		return err
	}
	parsed, err := x509.ParsePKIXPublicKey(block)
	key, isEC := parsed.(*ecdsa.PublicKey)
	if err != nil {
		return fmt.Errorf("--key=%s: must be an ECDSA public key: %w", keyFile, err)
	}
	if !isEC {
		return fmt.Errorf("--key=%s: must be an ECDSA public key, and is %T", keyFile, parsed)
	}
	for _, file := range []string{sumsFile, payloadFile} {
		text, err := os.ReadFile(filepath.Join(out, file))
		if err != nil {
			return err
		}
		encoded, err := os.ReadFile(filepath.Join(out, file+ending))
		if err != nil {
			return err
		}
		signature, err := base64.StdEncoding.DecodeString(string(encoded))
		if digest := sha256.Sum256(text); err != nil || !ecdsa.VerifyASN1(key, digest[:], signature) {
			return fmt.Errorf("%s: is no signature of %s by the key %s", file+ending, file, keyFile)
		}
	}
	return nil
}

// isOfRelease reports whether SHA256SUMS lists a file: not itself, and not the signatures, which are made of it.
func isOfRelease(name string) bool {
	return name != sumsFile && !strings.HasSuffix(name, ending) && !strings.HasPrefix(name, "image/")
}

// writtenImage reads the image that was written: the directory of make image, or the archive of a release.
func writtenImage(out string) (v1.ImageIndex, v1.Descriptor, error) {
	folder := filepath.Join(out, "image")
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		if err := unpackImage(filepath.Join(out, "image.tar"), folder); err != nil {
			return nil, v1.Descriptor{}, fmt.Errorf("%w: write the image first, with make image or make release", err)
		}
	}
	written, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return nil, v1.Descriptor{}, err
	}
	manifest, err := written.IndexManifest()
	if err != nil {
		return nil, v1.Descriptor{}, err
	}
	if len(manifest.Manifests) != 1 {
		return nil, v1.Descriptor{}, fmt.Errorf("%s holds %d images, expected one", folder, len(manifest.Manifests))
	}
	index, err := written.ImageIndex(manifest.Manifests[0].Digest)
	return index, manifest.Manifests[0], err
}

// pushSignature sends the signature of an image to where cosign looks for it, if there is one.
func pushSignature(ctx context.Context, out string, reference name.Tag, digest v1.Hash) error {
	signature, err := os.ReadFile(filepath.Join(out, payloadFile+ending))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(out, payloadFile))
	if err != nil {
		return err
	}
	if !bytes.Contains(text, []byte(digest.String())) {
		return fmt.Errorf("%s: is of another image than %s; sign it again", payloadFile, digest)
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.Append(base, mutate.Addendum{Layer: static.NewLayer(text, payloadType), Annotations: map[string]string{signatureKey: string(signature)}})
	if err != nil {
		return err
	}
	tag := reference.Context().Tag(strings.Replace(digest.String(), ":", "-", 1) + ending)
	if err := remote.Write(tag, image, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return err
	}
	fmt.Printf("Pushed its signature %s\n", tag)
	return nil
}
