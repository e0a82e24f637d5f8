// Package publish tells the API server where a scheduler answers questions, and which authority signed its
// certificate.
//
// Main type: a [Publication]. It has a certificate of its own making, whose key never leaves the process. The installer
// has made an APIService and, in a cluster, a Service without a selector and its EndpointSlices, one for IPv4 and one
// for IPv6; the leader writes its address and authority into them.
//
// Invariants:
//
//  1. The leader writes, and writes again what another client has overwritten. A process that does not lead writes only
//     while nothing answers where the API server passes questions on to. So the API server can discover the group while
//     none leads.
//  2. Objects that are not installed are not made. Then the API server passes no questions on, and a message says so
//     once.
//
// It must not know questions and answers.
package publish

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"hekla.sh/hekla/internal/keypair"
	"hekla.sh/hekla/pkg/apis/bounds"
)

const (
	// period is how often it is looked whether another client has overwritten what is published, and whether anything
	// answers there.
	period = 15 * time.Second
	// dialPatience is how long an answer may take until it counts as none.
	dialPatience = 2 * time.Second
	// retry is how soon a write that failed is tried again.
	retry = time.Second
	// life is how long a certificate is valid, renewal how old it becomes.
	life, renewal = 365 * 24 * time.Hour, 90 * 24 * time.Hour
	// patience bounds one request.
	patience = 10 * time.Second
)

// Publication is where one process answers.
type Publication struct {
	client             kubernetes.Interface
	namespace, service string
	group              string   // the name of the APIService
	further            []string // those of other groups that are served, too
	address            string   // of this process for the API server: IP:PORT, or "" if it is on the same host
	port               int      // where this process listens
	leads              func() bool
	poked              chan struct{}
	logger             logr.Logger
	certificate        atomic.Pointer[tls.Certificate]
	bundle             []byte
	made               time.Time
	said               string
}

// Options say what is published.
type Options struct {
	// Service is its name, in Namespace. APIService is VERSION.GROUP.
	Namespace, Service, APIService string
	// Further are APIServices of other groups that this process serves. One that does not exist, that this process may
	// not get, or that names another Service, as that of a Kueue which runs in the cluster, is left alone.
	Further []string
	// Endpoint is the IP:PORT at which the API server finds this process. It is empty for a process on the machine of
	// the API server, which is then found at its port of the host that the Service names.
	Endpoint string
	// Port is where this process listens.
	Port int
	// Leads reports whether this process answers questions; nil: it does.
	Leads  func() bool
	Logger logr.Logger
}

// New returns a publication with a certificate. Nothing is written before [Publication.Run].
func New(client kubernetes.Interface, o Options) (*Publication, error) {
	p := &Publication{client: client, namespace: o.Namespace, service: o.Service, group: o.APIService, further: o.Further, address: o.Endpoint, port: o.Port, logger: o.Logger,
		leads: o.Leads, poked: make(chan struct{}, 1)}
	if p.leads == nil {
		p.leads = func() bool { return true }
	}
	return p, p.renew(time.Now())
}

// renew makes a certificate for the name by which the API server calls the Service.
func (p *Publication) renew(now time.Time) error {
	host := p.host()
	pair, err := keypair.Serving(now, life, host, []string{host, "localhost"}, keypair.Pair{})
	if err != nil {
		return fmt.Errorf("make a certificate for %s: %w", host, err)
	}
	certificate, _, err := pair.PEM()
	if err != nil {
		return fmt.Errorf("make a certificate for %s: %w", host, err)
	}
	p.certificate.Store(pair.TLS())
	p.bundle, p.made = certificate, now
	return nil
}

// TLS returns the settings of the server. It asks clients for a certificate, which package gate checks.
func (p *Publication) TLS() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, ClientAuth: tls.RequestClientCert, NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return p.certificate.Load(), nil }}
}

// Run keeps published what the API server needs, until the context ends.
func (p *Publication) Run(ctx context.Context) {
	for ctx.Err() == nil {
		wait := period
		if err := p.step(ctx); err != nil && ctx.Err() == nil {
			if wait = retry; p.said != err.Error() {
				p.said = err.Error()
				p.logger.Info("Questions cannot be asked through the API server", "error", p.said)
			}
			if apierrors.IsNotFound(errors.Unwrap(err)) || apierrors.IsForbidden(errors.Unwrap(err)) {
				wait = period
			}
		} else {
			p.said = ""
		}
		select {
		case <-ctx.Done():
		case <-p.poked:
		case <-time.After(wait):
		}
	}
}

// Poke makes [Publication.Run] check at once, when this process begins to lead.
func (p *Publication) Poke() {
	select {
	case p.poked <- struct{}{}:
	default:
	}
}

func (p *Publication) step(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if now := time.Now(); now.Sub(p.made) > renewal {
		if err := p.renew(now); err != nil {
			return err
		}
	}
	if !p.leads() && p.isAnswered(ctx) {
		return nil
	}
	if p.address != "" {
		if err := p.writeEndpoint(ctx); err != nil {
			return fmt.Errorf("EndpointSlice %s/%s: %w", p.namespace, p.slice(), err)
		}
	}
	now, err := p.readAuthority(ctx, p.group)
	if err == nil {
		err = p.writeAuthority(ctx, p.group, now)
	}
	if err != nil {
		return fmt.Errorf("APIService %s: %w", p.group, err)
	}
	for _, name := range p.further {
		now, err := p.readAuthority(ctx, name)
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || err == nil && !p.isOurs(&now) {
			continue
		}
		if err == nil {
			err = p.writeAuthority(ctx, name, now)
		}
		if err != nil {
			return fmt.Errorf("APIService %s: %w", name, err)
		}
	}
	return nil
}

// isOurs reports whether an APIService names the Service by which this process is found.
func (p *Publication) isOurs(a *apiService) bool {
	return a.Spec.Service != nil && a.Spec.Service.Name == p.service && a.Spec.Service.Namespace == p.namespace
}

// isAnswered reports whether a process answers where the API server passes questions on to, with a certificate that the
// API server trusts.
func (p *Publication) isAnswered(ctx context.Context) bool {
	address, settings, err := p.Published(ctx)
	if err != nil {
		return false // the writes say what is wrong
	}
	dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: dialPatience}, Config: settings}
	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	_ = connection.Close()
	return true
}

// Published is where the API server passes questions on to, and by which settings it knows the process there. It is the
// leader, unless none has led yet. Any goroutine may call it.
func (p *Publication) Published(ctx context.Context) (address string, settings *tls.Config, err error) {
	known, err := p.readAuthority(ctx, p.group)
	if err != nil {
		return "", nil, fmt.Errorf("APIService %s: %w", p.group, err)
	}
	address = "localhost:443"
	if p.address != "" {
		slice, err := p.client.DiscoveryV1().EndpointSlices(p.namespace).Get(ctx, p.slice(), metav1.GetOptions{})
		if err != nil {
			return "", nil, fmt.Errorf("EndpointSlice %s/%s: %w", p.namespace, p.slice(), err)
		}
		if len(slice.Endpoints) == 0 || len(slice.Endpoints[0].Addresses) == 0 || len(slice.Ports) == 0 || slice.Ports[0].Port == nil {
			return "", nil, fmt.Errorf("EndpointSlice %s/%s has no address", p.namespace, p.slice())
		}
		address = net.JoinHostPort(slice.Endpoints[0].Addresses[0], strconv.Itoa(int(*slice.Ports[0].Port)))
	} else if known.Spec.Service != nil && known.Spec.Service.Port != nil {
		address = net.JoinHostPort("localhost", strconv.Itoa(*known.Spec.Service.Port))
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(known.Spec.CABundle) {
		return "", nil, fmt.Errorf("APIService %s has no caBundle", p.group)
	}
	return address, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities, ServerName: p.host()}, nil
}

// host is the name by which the API server calls the Service.
func (p *Publication) host() string { return p.service + "." + p.namespace + ".svc" }

// slice is the name of the EndpointSlice for addresses like that of this process. The type of a slice cannot be
// changed.
func (p *Publication) slice() string {
	host, _, _ := net.SplitHostPort(p.address)
	if ip := net.ParseIP(host); ip != nil && ip.To4() == nil {
		return p.service + "-ipv6"
	}
	return p.service
}

// writeEndpoint makes this process the only endpoint of the Service.
func (p *Publication) writeEndpoint(ctx context.Context) error {
	host, portText, err := net.SplitHostPort(p.address)
	if err != nil {
		return err
	}
	port, err := strconv.Atoi(portText)
	if err != nil {
		return err
	}
	slices := p.client.DiscoveryV1().EndpointSlices(p.namespace)
	slice, err := slices.Get(ctx, p.slice(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	if len(slice.Endpoints) == 1 && len(slice.Endpoints[0].Addresses) == 1 && slice.Endpoints[0].Addresses[0] == host &&
		len(slice.Ports) == 1 && slice.Ports[0].Port != nil && *slice.Ports[0].Port == int32(port) {
		return nil
	}
	name, ready, number := "answers", true, int32(port)
	slice.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{host}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}}
	slice.Ports = []discoveryv1.EndpointPort{{Name: &name, Port: &number}}
	_, err = slices.Update(ctx, slice, metav1.UpdateOptions{})
	return err
}

// apiService is what is read and written of one.
type apiService struct {
	Spec struct {
		CABundle []byte `json:"caBundle,omitempty"`
		Service  *struct {
			Namespace string `json:"namespace,omitempty"`
			Name      string `json:"name,omitempty"`
			Port      *int   `json:"port,omitempty"`
		} `json:"service,omitempty"`
	} `json:"spec"`
}

// pathOf is that of an APIService.
func pathOf(name string) string { return "/apis/apiregistration.k8s.io/v1/apiservices/" + name }

func (p *Publication) readAuthority(ctx context.Context, name string) (now apiService, err error) {
	body, err := p.client.Discovery().RESTClient().Get().AbsPath(pathOf(name)).SetHeader("Accept", "application/json").DoRaw(ctx)
	if err == nil {
		err = bounds.UnmarshalJSON(body, &now)
	}
	return now, err
}

// writeAuthority makes the API server trust the certificate, if an APIService does not do it yet.
func (p *Publication) writeAuthority(ctx context.Context, name string, now apiService) error {
	wanted := map[string]any{"caBundle": p.bundle}
	isSame := string(now.Spec.CABundle) == string(p.bundle)
	if p.address == "" {
		wanted["service"] = map[string]any{"port": p.port}
		isSame = isSame && now.Spec.Service != nil && now.Spec.Service.Port != nil && *now.Spec.Service.Port == p.port
	}
	if isSame {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"spec": wanted})
	if err != nil {
		return err
	}
	return p.client.Discovery().RESTClient().Patch(types.MergePatchType).AbsPath(pathOf(name)).Body(patch).SetHeader("Accept", "application/json").Do(ctx).Error()
}
