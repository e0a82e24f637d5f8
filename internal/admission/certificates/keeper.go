package certificates

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// conflictRetries is how often a Secret that another process has written in the meantime is read again at once. Each
// such write is one that another replica has done for us, so two are plenty.
const conflictRetries = 3

// Keeper holds the certificates that are served now. Step brings them up to date; the other methods may be called from
// any goroutine at any time.
type Keeper struct {
	source  source
	current atomic.Pointer[served]
}

// source gives the certificates that should be served now.
type source func(ctx context.Context) (*served, error)

type served struct {
	pair   tls.Certificate
	bundle []byte
}

// FromSecret keeps the certificates in a Secret, which must exist: it is installed empty, so that this process needs no
// right to create Secrets. The server is reached under the given hosts.
func FromSecret(api client.Client, live client.Reader, secret client.ObjectKey, hosts []string, life Life, now func() time.Time) *Keeper {
	return &Keeper{source: func(ctx context.Context) (*served, error) {
		return agree(ctx, api, live, secret, hosts, life, now)
	}}
}

// FromFiles serves a certificate that another program makes and renews, from PEM files that are read again in each
// step.
func FromFiles(certificate, key, bundle string) *Keeper {
	return &Keeper{source: func(context.Context) (*served, error) {
		pair, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			return nil, fmt.Errorf("the certificate in %s with the key in %s: %w", certificate, key, err)
		}
		data, err := os.ReadFile(bundle)
		if err == nil {
			data, err = bundleOf(data)
		}
		if err != nil {
			return nil, fmt.Errorf("the authorities in %s: %w", bundle, err)
		}
		return &served{pair, data}, nil
	}}
}

// Step looks whether other certificates should be served than are, and serves them. On an error those that are served
// stay.
func (k *Keeper) Step(ctx context.Context) error {
	next, err := k.source(ctx)
	if err != nil {
		return err
	}
	k.current.Store(next)
	return nil
}

// Bundle returns the authorities that an API server has to trust, in PEM; nil before the first successful step.
func (k *Keeper) Bundle() []byte {
	if now := k.current.Load(); now != nil {
		return now.bundle
	}
	return nil
}

// Certificate is for tls.Config.GetCertificate.
func (k *Keeper) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if now := k.current.Load(); now != nil {
		return &now.pair, nil
	}
	return nil, errors.New("there is no certificate yet")
}

// agree reads the Secret, renews what is due, and returns what all replicas serve from now on.
func agree(ctx context.Context, api client.Client, live client.Reader, name client.ObjectKey, hosts []string, life Life,
	now func() time.Time) (*served, error) {
	for range conflictRetries {
		secret := &corev1.Secret{}
		if err := live.Get(ctx, name, secret); err != nil {
			return nil, fmt.Errorf("reading the certificates in Secret %s: %w", name, err)
		}
		data, why, err := Renew(now(), life, hosts, secret.Data)
		if err != nil {
			return nil, fmt.Errorf("renewing the certificates in Secret %s: %w", name, err)
		}
		if why != "" {
			secret.Data = data
			if err = api.Update(ctx, secret); err == nil {
				logf.FromContext(ctx).Info("Renewed certificates", "secret", name.String(), "why", why)
			}
		}
		if apierrors.IsConflict(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("writing the certificates into Secret %s: %w", name, err)
		}
		pair, err := tls.X509KeyPair(secret.Data[ServingKey], secret.Data[ServingPrivateKey])
		if err != nil {
			return nil, fmt.Errorf("the certificate in Secret %s: %w", name, err)
		}
		return &served{pair, secret.Data[BundleKey]}, nil
	}
	return nil, fmt.Errorf("writing the certificates into Secret %s: another process keeps writing it", name)
}
