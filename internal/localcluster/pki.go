package localcluster

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"hekla.sh/hekla/internal/keypair"
)

// certificateLife is far longer than a local cluster is kept; nothing here renews certificates.
const certificateLife = 10 * 365 * 24 * time.Hour

// frontProxy is the identity of the API server towards those to whom it passes requests on, with the names of their
// users.
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
	now := time.Now()
	authority, err := keypair.Issue(now, certificateLife, &x509.Certificate{
		Subject:               pkix.Name{CommonName: "hekla-local-cluster"},
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}, keypair.Pair{})
	if err != nil {
		return err
	}
	if err := write(dir, "ca", authority); err != nil {
		return err
	}
	// Of the keys of service accounts no certificate is read.
	accounts, err := keypair.Serving(now, certificateLife, "service-account", nil, authority)
	if err != nil {
		return err
	}
	if err := write(dir, "service-account", accounts); err != nil {
		return err
	}
	for _, identity := range identities {
		template := &x509.Certificate{
			Subject:     pkix.Name{CommonName: identity.user},
			KeyUsage:    x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{identity.usage},
			DNSNames:    []string{"localhost"},
			IPAddresses: []net.IP{net.ParseIP(loopback)},
		}
		if identity.group != "" {
			template.Subject.Organization = []string{identity.group}
		}
		pair, err := keypair.Issue(now, certificateLife, template, authority)
		if err != nil {
			return err
		}
		if err := write(dir, identity.name, pair); err != nil {
			return err
		}
	}
	return nil
}

// write writes a pair to NAME.crt and NAME.key.
func write(dir, name string, pair keypair.Pair) error {
	certificate, key, err := pair.PEM()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, name+".key"), key, 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name+".crt"), certificate, 0o600)
}
