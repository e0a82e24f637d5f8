package discovery

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	topologyv1alpha1 "hekla.sh/hekla/pkg/apis/topology/v1alpha1"
)

const (
	// ReasonInvalidConfiguration is the reason of the Event that says what is wrong with the ConfigMap.
	ReasonInvalidConfiguration = "InvalidConfiguration"

	// ReasonSourceNotSupported is the reason of the Event that names a source of which nothing is discovered.
	ReasonSourceNotSupported = "SourceNotSupported"
)

// Reconciler keeps the discovered HyperNodes to what the ConfigMap and the labels of nodes say. Add puts it to work. It
// is used by one goroutine at a time.
type Reconciler struct {
	client     client.Client
	configMaps client.Reader
	configMap  client.ObjectKey
	events     events.EventRecorder

	inForce *Configuration // nil while nothing is asked for
	seen    string         // the version of the ConfigMap that was read last
}

// Reconcile reads the ConfigMap, works out the HyperNodes, and writes those that differ.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	if err := r.configure(ctx); err != nil {
		return reconcile.Result{}, err
	}
	if r.inForce == nil || len(r.inForce.Topologies) == 0 {
		return reconcile.Result{}, nil
	}
	nodes := &metav1.PartialObjectMetadataList{}
	nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	if err := r.client.List(ctx, nodes, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing nodes: %w", err)
	}
	hyperNodes := &topologyv1alpha1.HyperNodeList{}
	if err := r.client.List(ctx, hyperNodes, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing HyperNodes: %w", err)
	}
	var problems []error
	isBehind := false
	for _, c := range compare(Discover(r.inForce.Topologies, nodes.Items, hyperNodes.Items), hyperNodes.Items) {
		switch err := r.write(ctx, c); {
		case apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) || apierrors.IsNotFound(err):
			isBehind = true // what was listed is older than what there is
		case err != nil:
			problems = append(problems, err)
		}
	}
	switch {
	case len(problems) > 0:
		return reconcile.Result{}, errors.Join(problems...)
	case isBehind:
		return reconcile.Result{RequeueAfter: settle}, nil
	}
	return reconcile.Result{RequeueAfter: r.inForce.Interval}, nil
}

// configure reads the ConfigMap, if it has not been read yet. One that is wrong is reported once, and changes nothing.
func (r *Reconciler) configure(ctx context.Context) error {
	log := logf.FromContext(ctx).WithValues("configMap", r.configMap.String())
	configMap := &corev1.ConfigMap{}
	switch err := r.configMaps.Get(ctx, r.configMap, configMap); {
	case apierrors.IsNotFound(err):
		if r.inForce != nil {
			log.Info("HyperNodes are not discovered any more: there is no ConfigMap")
		}
		r.inForce, r.seen = nil, ""
		return nil
	case err != nil:
		return fmt.Errorf("reading ConfigMap %s: %w", r.configMap, err)
	}
	version := string(configMap.UID) + "/" + configMap.ResourceVersion
	if version == r.seen {
		return nil
	}
	r.seen = version
	content, has := configMap.Data[ConfigKey]
	configuration, err := Parse(content)
	if !has {
		err = fmt.Errorf("data: there is no key %q", ConfigKey)
	}
	if err != nil {
		log.Info("The ConfigMap is wrong and changes nothing: " + err.Error())
		r.events.Eventf(configMap, nil, corev1.EventTypeWarning, ReasonInvalidConfiguration, "Read",
			"%.1000s", "It changes nothing: "+err.Error())
		return nil
	}
	for _, refused := range configuration.Refused {
		log.Info("A source is left out: " + refused)
		r.events.Eventf(configMap, nil, corev1.EventTypeWarning, ReasonSourceNotSupported, "Read", "%.1000s", refused)
	}
	log.Info("The ConfigMap says by which labels of nodes HyperNodes are discovered", "topologies", configuration.Topologies)
	r.inForce = configuration
	return nil
}

// write makes one change. It changes and deletes only what is as it was when it was looked at.
func (r *Reconciler) write(ctx context.Context, c change) error {
	log := logf.FromContext(ctx)
	switch {
	case c.before == nil:
		log.V(1).Info("Creating a HyperNode", "hyperNode", c.after.Name)
		if err := r.client.Create(ctx, c.after); err != nil {
			return fmt.Errorf("creating HyperNode %s: %w", c.after.Name, err)
		}
	case c.after == nil:
		log.V(1).Info("Deleting a HyperNode", "hyperNode", c.before.Name)
		asSeen := client.Preconditions{UID: &c.before.UID, ResourceVersion: &c.before.ResourceVersion}
		if err := r.client.Delete(ctx, c.before.DeepCopy(), asSeen); err != nil {
			return fmt.Errorf("deleting HyperNode %s: %w", c.before.Name, err)
		}
	default:
		log.V(1).Info("Changing a HyperNode", "hyperNode", c.after.Name)
		asSeen := client.MergeFromWithOptions(c.before, client.MergeFromWithOptimisticLock{})
		if err := r.client.Patch(ctx, c.after, asSeen); err != nil {
			return fmt.Errorf("changing HyperNode %s: %w", c.after.Name, err)
		}
	}
	return nil
}
