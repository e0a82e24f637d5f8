package certificates

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"slices"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
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

// backdated is how long before its making a certificate is valid, for the sake of clocks that are late.
const backdated = 5 * time.Minute

// Life says how long certificates are valid. Each is renewed when a third of that is left.
type Life struct {
	// Authority is how long an authority is valid.
	Authority time.Duration

	// Serving is how long the server's certificate is valid.
	Serving time.Duration

	// Settle is how long an authority is in the bundle before it signs. It must be long enough for every API server to
	// read the bundle, and short beside Serving.
	Settle time.Duration
}

// DefaultLife is a year for the authority, ninety days for the server, and a minute for the bundle to get around.
func DefaultLife() Life {
	return Life{Authority: 365 * 24 * time.Hour, Serving: 90 * 24 * time.Hour, Settle: time.Minute}
}

// issued is one certificate with its private key, as far as it is known.
type issued struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// Renew returns what the Secret should hold now, and why it differs from what it holds; nil and an empty reason if it
// does not. The server is reached under the given hosts, names or addresses.
func Renew(now time.Time, life Life, hosts []string, stored map[string][]byte) (data map[string][]byte, why string, err error) {
	authorities := trusted(now, stored[BundleKey])
	newest, reason := issued{}, ""
	if len(authorities) > 0 {
		newest, reason = read(authorities[0], stored[AuthorityKey])
	} else {
		reason = "there is no valid authority"
	}
	if reason == "" && isDue(now, newest.certificate, life.Authority) {
		reason = "the authority expires at " + newest.certificate.NotAfter.UTC().Format(time.RFC3339)
	}
	isNew := reason != ""
	if isNew {
		if newest, err = newAuthority(now, life.Authority); err != nil {
			return nil, "", fmt.Errorf("making an authority: %w", err)
		}
		authorities = slices.Insert(authorities, 0, newest.certificate)
	}
	mustServe, isUrgent := servingIsDue(now, life, hosts, stored, authorities)
	settled := !now.Before(newest.certificate.NotBefore.Add(backdated + life.Settle))
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
	data[AuthorityKey], err = keyutil.MarshalPrivateKeyToPEM(newest.key)
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
func read(certificate *x509.Certificate, key []byte) (pair issued, why string) {
	parsed, err := keyutil.ParsePrivateKeyPEM(key)
	signer, signs := parsed.(crypto.Signer)
	if err != nil || !signs {
		return issued{}, "the private key of the authority cannot be read"
	}
	if public, comparable := signer.Public().(interface{ Equal(crypto.PublicKey) bool }); !comparable || !public.Equal(certificate.PublicKey) {
		return issued{}, "the private key is not that of the authority"
	}
	return issued{certificate, signer}, ""
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

func newAuthority(now time.Time, life time.Duration) (issued, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "volcano-admission-ca"},
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	return issue(now, life, template, issued{})
}

func newServing(now time.Time, life time.Duration, hosts []string, authority issued) (certificate, key []byte, err error) {
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "volcano-admission"},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, host := range hosts {
		if address := net.ParseIP(host); address != nil {
			template.IPAddresses = append(template.IPAddresses, address)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	pair, err := issue(now, life, template, authority)
	if err != nil {
		return nil, nil, err
	}
	if key, err = keyutil.MarshalPrivateKeyToPEM(pair.key); err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: pair.certificate.Raw}), key, nil
}

// issue signs a certificate with a new private key. Without an authority it signs itself.
func issue(now time.Time, life time.Duration, template *x509.Certificate, authority issued) (issued, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return issued{}, err
	}
	// 64 bits at random: two authorities of one name must not have one serial number.
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 64)); err != nil {
		return issued{}, err
	}
	template.SerialNumber.Add(template.SerialNumber, big.NewInt(1))
	template.NotBefore, template.NotAfter = now.Add(-backdated), now.Add(life)
	parent, signer := authority.certificate, authority.key
	if parent == nil {
		parent, signer = template, key
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return issued{}, err
	}
	certificate, err := x509.ParseCertificate(raw)
	return issued{certificate, key}, err
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
