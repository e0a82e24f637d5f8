package certificates

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"hekla.sh/hekla/internal/keypair"
)

// The keys of the Secret.
const (
	// BundleKey has the certificates of all authorities to trust, the newest first.
	BundleKey = "ca.crt"

	// AuthorityKey has the private key of the newest authority.
	AuthorityKey = "ca.key"

	// ServingKey has the certificate of the server.
	ServingKey = "tls.crt"

	// ServingPrivateKey has its private key.
	ServingPrivateKey = "tls.key"
)

// Life says how long certificates are valid. Each is renewed when a third of that is left.
type Life struct {
	// Authority is how long an authority is valid.
	Authority time.Duration

	// Serving is how long the server's certificate is valid.
	Serving time.Duration

	// Settle is how long an authority is in the bundle before it signs. It must be long enough for every API server to
	// read the bundle, and short compared with Serving.
	Settle time.Duration
}

// DefaultLife is a year for the authority, ninety days for the server, and a minute for the bundle to get around.
func DefaultLife() Life {
	return Life{Authority: 365 * 24 * time.Hour, Serving: 90 * 24 * time.Hour, Settle: time.Minute}
}

// Renew returns what the Secret should hold now, and why it differs from what it holds; nil and an empty reason if it
// does not. The server is reached under the given hosts, names or addresses.
func Renew(now time.Time, life Life, hosts []string, stored map[string][]byte) (data map[string][]byte, why string, err error) {
	authorities := trusted(now, stored[BundleKey])
	newest, reason := keypair.Pair{}, ""
	if len(authorities) > 0 {
		newest, reason = read(authorities[0], stored[AuthorityKey])
	} else {
		reason = "there is no valid authority"
	}
	if reason == "" && isDue(now, newest.Certificate, life.Authority) {
		reason = "the authority expires at " + newest.Certificate.NotAfter.UTC().Format(time.RFC3339)
	}
	isNew := reason != ""
	if isNew {
		if newest, err = newAuthority(now, life.Authority); err != nil {
			return nil, "", fmt.Errorf("making an authority: %w", err)
		}
		authorities = slices.Insert(authorities, 0, newest.Certificate)
	}
	mustServe, isUrgent := servingIsDue(now, life, hosts, stored, authorities)
	settled := !now.Before(newest.Certificate.NotBefore.Add(keypair.Backdated + life.Settle))
	if mustServe != "" && (settled || isUrgent) {
		reason = joined(reason, mustServe)
	} else {
		mustServe = ""
	}
	if reason == "" {
		return nil, "", nil
	}
	data = map[string][]byte{ServingKey: stored[ServingKey], ServingPrivateKey: stored[ServingPrivateKey]}
	if mustServe != "" {
		if data[ServingKey], data[ServingPrivateKey], err = newServing(now, life.Serving, hosts, newest); err != nil {
			return nil, "", fmt.Errorf("making the certificate of the server: %w", err)
		}
	}
	if data[BundleKey], err = cert.EncodeCertificates(authorities...); err != nil {
		return nil, "", err
	}
	data[AuthorityKey], err = keyutil.MarshalPrivateKeyToPEM(newest.Key)
	return data, reason, err
}

func joined(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

// trusted reads the authorities of a bundle that have not expired. What cannot be read is left out.
func trusted(now time.Time, bundle []byte) []*x509.Certificate {
	authorities, err := cert.ParseCertsPEM(bundle)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(authorities, func(a *x509.Certificate) bool { return !a.IsCA || now.After(a.NotAfter) })
}

// read pairs a certificate with its private key, or says why that is not possible.
func read(certificate *x509.Certificate, key []byte) (pair keypair.Pair, why string) {
	parsed, err := keyutil.ParsePrivateKeyPEM(key)
	signer, signs := parsed.(crypto.Signer)
	if err != nil || !signs {
		return keypair.Pair{}, "the private key of the authority cannot be read"
	}
	if public, comparable := signer.Public().(interface{ Equal(crypto.PublicKey) bool }); !comparable || !public.Equal(certificate.PublicKey) {
		return keypair.Pair{}, "the private key is not that of the authority"
	}
	return keypair.Pair{Certificate: certificate, Key: signer}, ""
}

// isDue says whether a third of the life it would be given now, or less, is left of a certificate.
func isDue(now time.Time, certificate *x509.Certificate, life time.Duration) bool {
	return certificate.NotAfter.Sub(now) <= life/3
}

// servingIsDue says why the server needs a new certificate, and whether it cannot wait for the authority to settle,
// because no client would accept the one it has by then. It is empty if the server needs none.
func servingIsDue(now time.Time, life Life, hosts []string, stored map[string][]byte, authorities []*x509.Certificate) (why string, isUrgent bool) {
	pair, err := tls.X509KeyPair(stored[ServingKey], stored[ServingPrivateKey])
	if err != nil {
		return "the server has no certificate that can be read", true
	}
	certificate := pair.Leaf
	for _, host := range hosts {
		if certificate.VerifyHostname(host) != nil {
			return "the certificate of the server is not for " + host, true
		}
	}
	pool := x509.NewCertPool()
	for _, authority := range authorities {
		pool.AddCert(authority)
	}
	_, err = certificate.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	switch {
	case err != nil:
		return "no client would accept the certificate of the server", true
	case certificate.CheckSignatureFrom(authorities[0]) != nil:
		why = "the certificate of the server is of an earlier authority"
	case isDue(now, certificate, life.Serving):
		why = "the certificate of the server expires at " + certificate.NotAfter.UTC().Format(time.RFC3339)
	}
	return why, certificate.NotAfter.Sub(now) <= life.Settle
}

func newAuthority(now time.Time, life time.Duration) (keypair.Pair, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "volcano-admission-ca"},
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	return keypair.Issue(now, life, template, keypair.Pair{})
}

func newServing(now time.Time, life time.Duration, hosts []string, authority keypair.Pair) (certificate, key []byte, err error) {
	pair, err := keypair.Serving(now, life, "volcano-admission", hosts, authority)
	if err != nil {
		return nil, nil, err
	}
	return pair.PEM()
}

// bundleOf checks that a bundle is one and returns it.
func bundleOf(data []byte) ([]byte, error) {
	if _, err := cert.ParseCertsPEM(data); err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, errors.New("it is empty")
	}
	return data, nil
}
