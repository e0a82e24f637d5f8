package localcluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// certificateLife is far longer than a local cluster is kept; nothing here renews certificates.
const certificateLife = 10 * 365 * 24 * time.Hour

// frontProxy is the identity of the API server towards those to whom it passes requests on, with the names of their users.
const frontProxy = "front-proxy"

// identities are the certificates of a control plane, each in NAME.crt and NAME.key. The serving certificate is for
// etcd and the API server alike: both listen on the same address.
var identities = [...]struct {
	name, user, group string
	usage             x509.ExtKeyUsage
}{
	{name: "server", user: "hekla-local-cluster", usage: x509.ExtKeyUsageServerAuth},
	{name: "etcd-client", user: "kube-apiserver", usage: x509.ExtKeyUsageClientAuth},
	{name: "admin", user: "hekla-admin", group: "system:masters", usage: x509.ExtKeyUsageClientAuth},
	{name: "kwok", user: "hekla-kwok", group: "system:masters", usage: x509.ExtKeyUsageClientAuth},
	{name: frontProxy, user: "hekla-front-proxy", usage: x509.ExtKeyUsageClientAuth},
	{name: "kube-controller-manager", user: "system:kube-controller-manager", usage: x509.ExtKeyUsageClientAuth},
}

// ensurePKI makes the keys and certificates of a control plane in dir, unless they are there: a cluster that is started
// again keeps them, and with them every kubeconfig and token it has given out.
func ensurePKI(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	work := dir + ".new"
	if err := os.RemoveAll(work); err != nil {
		return err
	}
	if err := os.MkdirAll(work, 0o700); err != nil {
		return err
	}
	if err := writePKI(work); err != nil {
		return fmt.Errorf("make the certificates of the cluster: %w", err)
	}
	return os.Rename(work, dir)
}

func writePKI(dir string) error {
	caKey, err := writeKey(dir, "ca")
	if err != nil {
		return err
	}
	caCertificate, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "hekla-local-cluster"}, caKey)
	if err != nil {
		return err
	}
	if err := writeCertificate(dir, "ca", caCertificate.Raw); err != nil {
		return err
	}
	if _, err := writeKey(dir, "service-account"); err != nil {
		return err
	}
	for _, identity := range identities {
		key, err := writeKey(dir, identity.name)
		if err != nil {
			return err
		}
		serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
		if err != nil {
			return err
		}
		template := &x509.Certificate{
			SerialNumber: serial,
			Subject:      pkix.Name{CommonName: identity.user},
			NotBefore:    caCertificate.NotBefore,
			NotAfter:     time.Now().Add(certificateLife),
			KeyUsage:     x509.KeyUsageDigitalSignature,
			ExtKeyUsage:  []x509.ExtKeyUsage{identity.usage},
			DNSNames:     []string{"localhost"},
			IPAddresses:  []net.IP{net.ParseIP(loopback)},
		}
		if identity.group != "" {
			template.Subject.Organization = []string{identity.group}
		}
		raw, err := x509.CreateCertificate(rand.Reader, template, caCertificate, key.Public(), caKey)
		if err != nil {
			return err
		}
		if err := writeCertificate(dir, identity.name, raw); err != nil {
			return err
		}
	}
	return nil
}

func writeKey(dir, name string) (crypto.Signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	encoded, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, err
	}
	return key, os.WriteFile(filepath.Join(dir, name+".key"), encoded, 0o600)
}

func writeCertificate(dir, name string, raw []byte) error {
	encoded := pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: raw})
	return os.WriteFile(filepath.Join(dir, name+".crt"), encoded, 0o600)
}
