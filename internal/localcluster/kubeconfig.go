package localcluster

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// tokenLife is how long a ServiceAccount token is asked for. A foreign API server may grant less.
const tokenLife = 365 * 24 * time.Hour

// contextName is what a cluster is called in kubeconfigs: the context, the cluster and the user.
func contextName(cluster string) string { return "hekla-" + cluster }

// writeKubeconfig writes a kubeconfig, readable by its owner only, for one of the identities in the PKI folder.
func writeKubeconfig(path, name, server, pki, identity string) error {
	cluster, user := clientcmdapi.NewCluster(), clientcmdapi.NewAuthInfo()
	cluster.Server = server
	for file, data := range map[string]*[]byte{
		"ca.crt":          &cluster.CertificateAuthorityData,
		identity + ".crt": &user.ClientCertificateData,
		identity + ".key": &user.ClientKeyData,
	} {
		content, err := os.ReadFile(filepath.Join(pki, file))
		if err != nil {
			return fmt.Errorf("read the certificates of the cluster: %w", err)
		}
		*data = content
	}
	if err := writeConfig(*newKubeconfig(name, cluster, user), path); err != nil {
		return fmt.Errorf("write the kubeconfig %s: %w", path, err)
	}
	return nil
}

// writeConfig replaces a kubeconfig in one step: what is ended meanwhile leaves the old one or the new one.
func writeConfig(config clientcmdapi.Config, path string) error {
	content, err := clientcmd.Write(config)
	if err != nil {
		return err
	}
	return replaceFile(path, content)
}

// newKubeconfig returns a kubeconfig with one context, the current one.
func newKubeconfig(name string, cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) *clientcmdapi.Config {
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = cluster
	config.AuthInfos[name] = user
	current := clientcmdapi.NewContext()
	current.Cluster, current.AuthInfo = name, name
	config.Contexts[name] = current
	config.CurrentContext = name
	return config
}

// copyKubeconfig makes the current context of a foreign kubeconfig the cluster's own: what the user does to that file
// later does not move our processes to another cluster.
func (c *Cluster) copyKubeconfig(path string) error {
	config, err := readCurrentContext(path)
	if err != nil {
		return err
	}
	c.state.Kubeconfig = filepath.Join(c.dir, "kubeconfig")
	if err := writeConfig(*config, c.state.Kubeconfig); err != nil {
		return fmt.Errorf("write the kubeconfig %s: %w", c.state.Kubeconfig, err)
	}
	return c.loadConfig()
}

// readCurrentContext reads a kubeconfig down to its current context, with the content of every file it refers to.
func readCurrentContext(path string) (*clientcmdapi.Config, error) {
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig %s: %w", path, err)
	}
	if err := clientcmdapi.MinifyConfig(config); err != nil {
		return nil, fmt.Errorf("the kubeconfig %s has no usable current context: %w; choose one with kubectl config use-context", path, err)
	}
	for _, resolve := range []func() error{
		func() error { return clientcmd.ResolveLocalPaths(config) },
		func() error { return clientcmdapi.FlattenConfig(config) },
	} {
		if err := resolve(); err != nil {
			return nil, fmt.Errorf("a file that the kubeconfig %s refers to: %w", path, err)
		}
	}
	return config, nil
}

// serviceAccountToken asks the API server for a token of a ServiceAccount.
func (c *Cluster) serviceAccountToken(ctx context.Context, namespace, name string) (*authenticationv1.TokenRequestStatus, error) {
	client, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return nil, err
	}
	seconds := int64(tokenLife.Seconds())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	request, err = client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("ask for a token of the ServiceAccount %s/%s: %w", namespace, name, err)
	}
	return &request.Status, nil
}

// ServiceAccountConfig returns a client configuration with exactly the rights of a ServiceAccount, without a
// client-side rate limit.
func (c *Cluster) ServiceAccountConfig(ctx context.Context, namespace, name string) (*rest.Config, error) {
	token, err := c.serviceAccountToken(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	config := rest.AnonymousClientConfig(c.config)
	config.BearerToken = token.Token
	config.QPS = -1
	return config, nil
}

// ServiceAccountKubeconfig writes a kubeconfig with exactly the rights of a ServiceAccount and returns its path and
// until when its token is valid. Calling it again renews the token for processes that run with it.
func (c *Cluster) ServiceAccountKubeconfig(ctx context.Context, namespace, name string) (path string, expires time.Time, err error) {
	token, err := c.serviceAccountToken(ctx, namespace, name)
	if err != nil {
		return "", time.Time{}, err
	}
	config, err := readCurrentContext(c.state.Kubeconfig)
	if err != nil {
		return "", time.Time{}, err
	}
	base := filepath.Join(c.dir, namespace+"-"+name)
	// Clients read a token file again every minute, so a renewed token needs no restart.
	if err := os.WriteFile(base+".token", []byte(token.Token), 0o600); err != nil {
		return "", time.Time{}, fmt.Errorf("write a token: %w", err)
	}
	user := clientcmdapi.NewAuthInfo()
	user.TokenFile = base + ".token"
	cluster := config.Clusters[config.Contexts[config.CurrentContext].Cluster]
	c.mutex.Lock()
	cluster.Server = cmp.Or(c.routes[types.NamespacedName{Namespace: namespace, Name: name}], cluster.Server)
	c.mutex.Unlock()
	path = base + ".kubeconfig"
	if err := writeConfig(*newKubeconfig(contextName(c.state.Name), cluster, user), path); err != nil {
		return "", time.Time{}, fmt.Errorf("write the kubeconfig %s: %w", path, err)
	}
	return path, token.ExpirationTimestamp.Time, nil
}

// RouteServiceAccount makes the kubeconfigs of a ServiceAccount that are written from now on name another address of
// the API server. Who serves there has to have a certificate of the cluster; see ServingCertificate.
func (c *Cluster) RouteServiceAccount(account types.NamespacedName, server string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.routes == nil {
		c.routes = map[types.NamespacedName]string{}
	}
	c.routes[account] = server
}

// ServingCertificate returns the certificate of the API server, for a proxy that stands in front of it on the loopback
// interface.
func (c *Cluster) ServingCertificate() (tls.Certificate, error) {
	base := filepath.Join(controlPlane{c}.pki(), "server")
	return tls.LoadX509KeyPair(base+".crt", base+".key")
}

// mergeInto adds the cluster to a kubeconfig file, which may hold others, and makes it the current one there.
func (c *Cluster) mergeInto(path string) error {
	own, err := readCurrentContext(c.state.Kubeconfig)
	if err != nil {
		return err
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	config, err := clientcmd.LoadFromFile(absolute)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		config = clientcmdapi.NewConfig()
	case err != nil:
		return err
	}
	name := contextName(c.state.Name)
	current := own.Contexts[own.CurrentContext]
	added := newKubeconfig(name, own.Clusters[current.Cluster], own.AuthInfos[current.AuthInfo])
	config.Clusters[name] = added.Clusters[name]
	config.AuthInfos[name] = added.AuthInfos[name]
	config.Contexts[name] = added.Contexts[name]
	config.CurrentContext = name
	if err := writeConfig(*config, absolute); err != nil {
		return err
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.state.MergedInto = absolute
	return c.state.write(c.dir)
}

// removeContext takes a cluster out of a kubeconfig file, and removes the file when nothing is left in it.
func removeContext(path, name string) error {
	config, err := clientcmd.LoadFromFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	delete(config.Clusters, name)
	delete(config.AuthInfos, name)
	delete(config.Contexts, name)
	if config.CurrentContext == name {
		config.CurrentContext = ""
	}
	if len(config.Clusters)+len(config.AuthInfos)+len(config.Contexts) == 0 {
		return os.Remove(path)
	}
	return writeConfig(*config, path)
}
