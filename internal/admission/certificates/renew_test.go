package certificates

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var (
	noon  = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	life  = Life{Authority: 36 * time.Hour, Serving: 9 * time.Hour, Settle: time.Minute}
	hosts = []string{"hooks.system.svc", "127.0.0.1"}
)

// accepts says whether an API server with this bundle accepts the certificate of the server.
func accepts(now time.Time, bundle []byte, stored map[string][]byte) error {
	pair, err := tls.X509KeyPair(stored[ServingKey], stored[ServingPrivateKey])
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(bundle) {
		return errors.New("the bundle is empty")
	}
	for _, host := range hosts {
		options := x509.VerifyOptions{Roots: pool, CurrentTime: now, DNSName: host, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
		if _, err := pair.Leaf.Verify(options); err != nil {
			return err
		}
	}
	return nil
}

// Whenever it is looked at, as long as that is often enough, an API server that has read the bundle within the time to
// settle accepts what it is shown.
func TestAtNoMomentIsACertificateShownThatIsNotTrusted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		life := Life{Authority: 18 * time.Hour, Serving: 9 * time.Hour, Settle: time.Minute}
		renew := func(now time.Time, stored map[string][]byte) (map[string][]byte, string) {
			data, why, err := Renew(now, life, hosts, stored)
			if err != nil {
				t.Fatal(err)
			}
			if why == "" {
				return stored, ""
			}
			return data, why
		}
		now := noon
		stored, why := renew(now, nil)
		if why == "" {
			t.Fatal("nothing is made of nothing")
		}
		type seen struct {
			at     time.Time
			bundle []byte
		}
		history := []seen{{now, stored[BundleKey]}}
		authorities, servers := map[string]bool{}, map[string]bool{}
		steps := rapid.SampledFrom([]time.Duration{10 * time.Second, 59 * time.Second, 2 * time.Hour, 3*time.Hour - time.Second})
		for range 12 {
			now = now.Add(steps.Draw(t, "later"))
			stored, _ = renew(now, stored)
			history = append(history, seen{now, stored[BundleKey]})
			authorities[string(stored[AuthorityKey])], servers[string(stored[ServingKey])] = true, true
			for _, then := range history {
				// The one before the last that is old enough is what the slowest API server knows.
				if now.Sub(then.at) <= life.Settle {
					if err := accepts(now, then.bundle, stored); err != nil {
						t.Fatalf("an API server that read the bundle %s ago: %v", now.Sub(then.at), err)
					}
				}
			}
			if again, why, err := Renew(now, life, hosts, stored); again != nil || why != "" || err != nil {
				t.Fatalf("what was renewed is renewed again: %s (%v)", why, err)
			}
		}
		if isLong := now.Sub(noon) > life.Authority; isLong && (len(servers) < 3 || len(authorities) < 2) {
			t.Fatalf("%d certificates and %d authorities in %s", len(servers), len(authorities), now.Sub(noon))
		}
	})
}

func TestANewAuthoritySignsOnlyWhenItIsKnown(t *testing.T) {
	stored, _, err := Renew(noon, life, hosts, nil)
	if err != nil {
		t.Fatal(err)
	}
	serving := stored[ServingKey]
	step := func(later time.Duration, want string) {
		t.Helper()
		data, why, err := Renew(noon.Add(later), life, hosts, stored)
		if err != nil || !strings.HasPrefix(why, want) || want == "" && why != "" {
			t.Fatalf("after %s: %q, %v, want %q", later, why, err, want)
		}
		if why != "" {
			stored = data
		}
	}
	step(5*time.Hour, "")
	step(6*time.Hour, "the certificate of the server expires")
	if bytes.Equal(stored[ServingKey], serving) || !strings.Contains(string(stored[BundleKey]), "BEGIN") {
		t.Error("the certificate is the old one")
	}
	for hour := 12; hour < 24; hour += 6 {
		step(time.Duration(hour)*time.Hour, "the certificate of the server expires")
	}
	serving = stored[ServingKey]
	step(24*time.Hour, "the authority expires")
	if !bytes.Equal(stored[ServingKey], serving) || bytes.Count(stored[BundleKey], []byte("BEGIN")) != 2 {
		t.Error("a new authority signs at once, or the old one is forgotten")
	}
	step(24*time.Hour+30*time.Second, "")
	step(24*time.Hour+time.Minute, "the certificate of the server is of an earlier authority")
	step(31*time.Hour, "the certificate of the server expires")
	step(36*time.Hour+time.Second, "")
	step(37*time.Hour, "the certificate of the server expires")
	if bytes.Count(stored[BundleKey], []byte("BEGIN")) != 1 {
		t.Error("an authority that has expired is still in the bundle")
	}
}

func TestWhatIsBrokenIsReplaced(t *testing.T) {
	good, _, err := Renew(noon, life, hosts, nil)
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := Renew(noon, life, []string{"elsewhere"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		edit  func(data map[string][]byte)
		later time.Duration
		want  string
	}{
		"no authority":                {func(d map[string][]byte) { delete(d, BundleKey) }, 0, "there is no valid authority"},
		"nonsense for an authority":   {func(d map[string][]byte) { d[BundleKey] = []byte("nonsense") }, 0, "there is no valid authority"},
		"no key of the authority":     {func(d map[string][]byte) { delete(d, AuthorityKey) }, 0, "the private key of the authority cannot be read"},
		"another's key":               {func(d map[string][]byte) { d[AuthorityKey] = other[AuthorityKey] }, 0, "the private key is not that of the authority"},
		"no certificate":              {func(d map[string][]byte) { delete(d, ServingKey) }, 0, "the server has no certificate that can be read"},
		"another's private key":       {func(d map[string][]byte) { d[ServingPrivateKey] = other[ServingPrivateKey] }, 0, "the server has no certificate that can be read"},
		"a certificate for elsewhere": {func(d map[string][]byte) { copyServing(d, other) }, 0, "the certificate of the server is not for hooks.system.svc"},
		"all have expired":            {func(map[string][]byte) {}, 37 * time.Hour, "there is no valid authority"},
	} {
		t.Run(name, func(t *testing.T) {
			stored := map[string][]byte{}
			for key, value := range good {
				stored[key] = value
			}
			test.edit(stored)
			now := noon.Add(test.later)
			data, why, err := Renew(now, life, hosts, stored)
			if err != nil || !strings.Contains(why, test.want) {
				t.Fatalf("%q, %v, want %q", why, err, test.want)
			}
			if err := accepts(now, data[BundleKey], data); err != nil {
				t.Error(err)
			}
		})
	}
}

// Such are the certificates of a server that was told to make short ones, when it is started again.
func TestWhatExpiresBeforeANewAuthoritySettlesDoesNotWaitForIt(t *testing.T) {
	short := Life{Authority: 9 * time.Second, Serving: 6 * time.Second, Settle: time.Second}
	stored, _, err := Renew(noon, short, hosts, nil)
	if err != nil {
		t.Fatal(err)
	}
	data, why, err := Renew(noon.Add(3*time.Second), life, hosts, stored)
	if err != nil || !strings.Contains(why, "of an earlier authority") {
		t.Fatalf("%q, %v", why, err)
	}
	if err := accepts(noon.Add(time.Hour), data[BundleKey], data); err != nil {
		t.Error(err)
	}
}

func copyServing(to, from map[string][]byte) {
	to[ServingKey], to[ServingPrivateKey] = from[ServingKey], from[ServingPrivateKey]
}

func TestCertificatesOfOthersAreReadAgain(t *testing.T) {
	folder := t.TempDir()
	path := func(name string) string { return filepath.Join(folder, name) }
	write := func(data map[string][]byte) {
		for key, value := range data {
			if err := os.WriteFile(path(key), value, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	k := FromFiles(path(ServingKey), path(ServingPrivateKey), path(BundleKey))
	if _, err := k.Certificate(nil); err == nil || k.Bundle() != nil {
		t.Error("there is a certificate before there is one")
	}
	if err := k.Step(t.Context()); err == nil || !strings.Contains(err.Error(), path(ServingKey)) {
		t.Errorf("files that are missing: %v", err)
	}
	var last []byte
	for range 2 {
		data, _, err := Renew(time.Now(), life, hosts, nil)
		if err != nil {
			t.Fatal(err)
		}
		write(data)
		if err := k.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		served, err := k.Certificate(nil)
		if err != nil || bytes.Equal(served.Certificate[0], last) || !bytes.Equal(k.Bundle(), data[BundleKey]) {
			t.Errorf("the files are not read again (%v)", err)
		}
		last = served.Certificate[0]
	}
	write(map[string][]byte{BundleKey: []byte("nonsense")})
	if err := k.Step(t.Context()); err == nil || len(k.Bundle()) < 100 {
		t.Errorf("a bad file has replaced a good one: %v", err)
	}
}
