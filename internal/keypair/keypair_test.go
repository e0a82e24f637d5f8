package keypair_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"testing"
	"time"

	"hekla.sh/hekla/internal/keypair"
)

func TestAServerIsTrustedByThoseThatTrustItsAuthority(t *testing.T) {
	now := time.Now()
	authority, err := keypair.Issue(now, time.Hour, &x509.Certificate{Subject: pkix.Name{CommonName: "authority"}, KeyUsage: x509.KeyUsageCertSign,
		BasicConstraintsValid: true, IsCA: true}, keypair.Pair{})
	if err != nil {
		t.Fatal(err)
	}
	for name, signer := range map[string]keypair.Pair{"its own": {}, "another": authority} {
		t.Run(name, func(t *testing.T) {
			server, err := keypair.Serving(now, time.Hour, "server", []string{"server.example", "192.0.2.1"}, signer)
			if err != nil {
				t.Fatal(err)
			}
			trusted := x509.NewCertPool()
			if trusted.AddCert(server.Certificate); signer.Certificate != nil {
				trusted = x509.NewCertPool()
				trusted.AddCert(signer.Certificate)
			}
			verify := func(host string, at time.Time) error {
				_, err := server.Certificate.Verify(x509.VerifyOptions{DNSName: host, Roots: trusted, CurrentTime: at})
				return err
			}
			for _, host := range []string{"server.example", "192.0.2.1"} {
				if err := verify(host, now); err != nil {
					t.Errorf("%s: %v", host, err)
				}
			}
			if err := verify("other.example", now); err == nil {
				t.Error("the certificate is valid for a host that was not named")
			}
			if err := verify("server.example", now.Add(2*time.Hour)); err == nil {
				t.Error("the certificate is valid after its life")
			}
			if err := verify("server.example", now.Add(-time.Minute)); err != nil {
				t.Errorf("by a clock that is a minute late: %v", err)
			}
			certificate, key, err := server.PEM()
			if err != nil {
				t.Fatal(err)
			}
			if read, err := tls.X509KeyPair(certificate, key); err != nil || !read.Leaf.Equal(server.TLS().Leaf) {
				t.Errorf("read from PEM it is %v, %v", read.Leaf, err)
			}
		})
	}
}
