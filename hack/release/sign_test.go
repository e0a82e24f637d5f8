package main

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	cosign "github.com/sigstore/sigstore/pkg/signature/payload"
	"sigs.k8s.io/yaml"
)

// keys makes a pair of keys, and returns the files of the private and the public one.
func keys(t *testing.T) (private, public string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	folder := t.TempDir()
	file := func(name, kind string, content []byte, err error) string {
		check(t, err)
		path := filepath.Join(folder, name)
		check(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600))
		return path
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	private = file("key.pem", "PRIVATE KEY", secret, err)
	open, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	return private, file("key.pub", "PUBLIC KEY", open, err)
}

// copyOf copies the files of a release, so that a test can change them.
func copyOf(t *testing.T, folder string) string {
	t.Helper()
	to := t.TempDir()
	check(t, os.CopyFS(to, os.DirFS(folder)))
	return to
}

func TestASignedReleaseIsCheckedAndPushed(t *testing.T) {
	out := copyOf(t, makeOnce(t).release)
	private, public := keys(t)
	check(t, run(t.Context(), []string{"check", "--out=" + out}))
	check(t, run(t.Context(), []string{"sign", "--out=" + out, "--key=" + private}))
	check(t, run(t.Context(), []string{"check", "--out=" + out, "--key=" + public}))

	// Cosign looks for the signature of an image under a tag that has its digest.
	server := httptest.NewServer(registry.New())
	defer server.Close()
	to := strings.TrimPrefix(server.URL, "http://") + "/team/hekla:v1.2.3"
	check(t, run(t.Context(), []string{"push", "--out=" + out, "--name=" + to}))
	reference, err := name.NewTag(to)
	check(t, err)
	pulled, err := remote.Index(reference)
	check(t, err)
	digest, err := pulled.Digest()
	check(t, err)
	signature, err := remote.Image(reference.Context().Tag("sha256-" + digest.Hex + ".sig"))
	check(t, err)
	manifest, err := signature.Manifest()
	check(t, err)
	layers, err := signature.Layers()
	check(t, err)
	content, err := layers[0].Uncompressed()
	check(t, err)
	text, err := io.ReadAll(content)
	check(t, err)
	stored, err := os.ReadFile(filepath.Join(out, "image.payload.json.sig"))
	check(t, err)
	if got := manifest.Layers[0]; got.Annotations["dev.cosignproject.cosign/signature"] != string(stored) ||
		got.MediaType != "application/vnd.dev.cosign.simplesigning.v1+json" || !strings.Contains(string(text), digest.String()) {
		t.Errorf("the signature in the registry is %+v of %s", got, text)
	}
	if _, err := base64.StdEncoding.DecodeString(string(stored)); err != nil {
		t.Error(err)
	}
}

// The verifier is that of the library by which cosign checks signatures with a key. What is around them is as cosign's
// specification says.
func TestSignaturesAreThoseOfCosign(t *testing.T) {
	out := copyOf(t, makeOnce(t).release)
	private, public := keys(t)
	check(t, run(t.Context(), []string{"sign", "--out=" + out, "--key=" + private}))
	text, err := os.ReadFile(public)
	check(t, err)
	key, err := cryptoutils.UnmarshalPEMToPublicKey(text)
	check(t, err)
	verifier, err := signature.LoadVerifier(key, crypto.SHA256)
	check(t, err)
	for _, file := range []string{sumsFile, payloadFile} {
		signed, err := os.ReadFile(filepath.Join(out, file))
		check(t, err)
		encoded, err := os.ReadFile(filepath.Join(out, file+ending))
		check(t, err)
		plain, err := base64.StdEncoding.Strict().DecodeString(string(encoded))
		check(t, err)
		if err := verifier.VerifySignature(bytes.NewReader(plain), bytes.NewReader(signed)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if verifier.VerifySignature(bytes.NewReader(plain), bytes.NewReader(append(signed, '\n'))) == nil {
			t.Errorf("%s: a changed file passes", file)
		}
	}
	text, err = os.ReadFile(filepath.Join(out, payloadFile))
	check(t, err)
	var said cosign.SimpleContainerImage
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	check(t, decoder.Decode(&said))
	_, descriptor, err := writtenImage(out)
	check(t, err)
	if c := &said.Critical; c.Type != cosign.CosignSignatureType || c.Image.DockerManifestDigest != descriptor.Digest.String() ||
		c.Identity.DockerReference != "registry.example.com/hekla" {
		t.Errorf("the payload is %s", text)
	}
}

func TestWhatWasChangedIsNotTakenForTheRelease(t *testing.T) {
	private, public := keys(t)
	_, other := keys(t)
	for name, change := range map[string]func(out string) string{ // it returns the key
		"another key": func(string) string { return other },
		"a file":      func(out string) string { return written(t, out, "krew.yaml") },
		"one more":    func(out string) string { return written(t, out, "more.yaml") },
		"the sums":    func(out string) string { return written(t, out, "SHA256SUMS") },
		"the payload": func(out string) string { return written(t, out, "image.payload.json") },
	} {
		t.Run(name, func(t *testing.T) {
			out := copyOf(t, makeOnce(t).release)
			check(t, run(t.Context(), []string{"sign", "--out=" + out, "--key=" + private}))
			key := change(out)
			if key == "" {
				key = public
			}
			if run(t.Context(), []string{"check", "--out=" + out, "--key=" + key}) == nil {
				t.Error("it passes")
			}
		})
	}
	if err := run(t.Context(), []string{"sign", "--out=" + makeOnce(t).release, "--key=" + public}); err == nil || !strings.Contains(err.Error(), "private key") {
		t.Errorf("signing with a public key says %v", err)
	}
}

// written writes something else into a file of a release.
func written(t *testing.T, out, name string) (key string) {
	t.Helper()
	check(t, os.WriteFile(filepath.Join(out, name), []byte("{}\n"), 0o600))
	return ""
}

func TestTheReleaseIsAChartRepositoryAndHasAPlugin(t *testing.T) {
	folder := makeOnce(t).release
	read := func(name string, into any) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(folder, name))
		check(t, err)
		check(t, yaml.Unmarshal(text, into))
	}
	var index struct {
		Entries map[string][]struct {
			Version, Digest string
			URLs            []string
		}
	}
	read("index.yaml", &index)
	sum, err := checksum(filepath.Join(folder, "hekla-1.2.3.tgz"))
	check(t, err)
	if got := index.Entries["hekla"]; len(got) != 1 || got[0].Version != "1.2.3" || got[0].Digest != sum || got[0].URLs[0] != "hekla-1.2.3.tgz" {
		t.Errorf("the index has %+v", got)
	}
	var plugin struct {
		Spec struct {
			Version   string
			Platforms []struct{ URI, SHA256, Bin string }
		}
	}
	read("krew.yaml", &plugin)
	if got := plugin.Spec; got.Version != "v1.2.3" || len(got.Platforms) != 4 {
		t.Fatalf("the plugin is %+v", got)
	}
	for _, p := range plugin.Spec.Platforms {
		file, isPublished := strings.CutPrefix(p.URI, "https://example.com/v1.2.3/")
		if sum, err := checksum(filepath.Join(folder, file)); !isPublished || err != nil || sum != p.SHA256 || p.Bin != "kubectl-hekla" {
			t.Errorf("the plugin has %+v: %v", p, err)
		}
	}
}
