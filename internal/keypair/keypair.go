package keypair

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// Backdated is how long before its making a certificate is valid.
const Backdated = 5 * time.Minute

// Pair is a certificate with its private key. The zero Pair is none.
type Pair struct {
	Certificate *x509.Certificate
	Key         crypto.Signer
}

// Issue signs a certificate with a new private key. It sets the serial number of the template and the times between
// which the certificate is valid. Without an authority the certificate signs itself. The error is one of the template
// or of the source of random numbers.
func Issue(now time.Time, life time.Duration, template *x509.Certificate, authority Pair) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	// 64 bits at random: two authorities of one name must not have one serial number.
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 64)); err != nil {
		return Pair{}, err
	}
	template.SerialNumber.Add(template.SerialNumber, big.NewInt(1))
	template.NotBefore, template.NotAfter = now.Add(-Backdated), now.Add(life)
	parent, signer := authority.Certificate, authority.Key
	if parent == nil {
		parent, signer = template, key
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return Pair{}, err
	}
	certificate, err := x509.ParseCertificate(raw)
	return Pair{certificate, key}, err
}

// Serving makes the certificate of a server that is reached under the given hosts, names or addresses. Errors are those
// of [Issue].
func Serving(now time.Time, life time.Duration, name string, hosts []string, authority Pair) (Pair, error) {
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
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
	return Issue(now, life, template, authority)
}

// PEM encodes both parts. The error is that of a key of an unknown type.
func (p Pair) PEM() (certificate, key []byte, err error) {
	key, err = keyutil.MarshalPrivateKeyToPEM(p.Key)
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: p.Certificate.Raw}), key, err
}

// TLS returns the pair as a server takes it.
func (p Pair) TLS() *tls.Certificate {
	return &tls.Certificate{Certificate: [][]byte{p.Certificate.Raw}, PrivateKey: p.Key, Leaf: p.Certificate}
}
