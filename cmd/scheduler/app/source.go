package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// configurationKey is the key of a ConfigMap under which the configuration stands.
const configurationKey = "volcano-scheduler.conf"

const (
	// filePoll is how often a file is read. Reading a few kilobytes costs nothing, and unlike notifications it sees
	// every kind of change. A ConfigMap volume swaps a symbolic link two folders up, editors rename files, and network
	// file systems send no notifications.
	filePoll = time.Second
	// maxConfiguration bounds what is read of a file: a ConfigMap cannot be larger either.
	maxConfiguration = 1 << 20
)

// source is where a configuration comes from.
type source interface {
	// read returns what it holds now.
	read(ctx context.Context) document
	// watch tells of every change after a document, until the context ends.
	watch(ctx context.Context, from document, changed func(document))
}

// noSource is no configuration at all; the default is used.
type noSource struct{}

func (noSource) read(context.Context) document                           { return document{} }
func (noSource) watch(ctx context.Context, _ document, _ func(document)) { <-ctx.Done() }

// file is a configuration in the file system.
type file struct {
	path string
	poll time.Duration
}

func (f file) read(context.Context) document {
	d := document{place: "file " + f.path}
	d.text, d.problem = f.content()
	return d
}

func (f file) content() ([]byte, error) {
	opened, err := os.Open(f.path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = opened.Close() }()
	text, err := io.ReadAll(io.LimitReader(opened, maxConfiguration+1))
	if err == nil && len(text) > maxConfiguration {
		return nil, fmt.Errorf("it is larger than %d bytes", maxConfiguration)
	}
	return text, err
}

func (f file) watch(ctx context.Context, last document, changed func(document)) {
	ticker := time.NewTicker(f.poll)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			now := f.read(ctx)
			if isSame := bytes.Equal(now.text, last.text) && fmt.Sprint(now.problem) == fmt.Sprint(last.problem); !isSame {
				changed(now)
			}
			last = now
		}
	}
}

// namespaceFile is where a pod finds the name of its namespace.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// ownPod returns the pod that this process runs in, nil if it runs in none or that cannot be found out. A pod that says
// nothing else is the host name of its containers.
func ownPod(ctx context.Context, client kubernetes.Interface) *corev1.ObjectReference {
	name, err := os.Hostname()
	if err != nil {
		return nil
	}
	namespace, err := os.ReadFile(namespaceFile)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	pod, err := client.CoreV1().Pods(string(namespace)).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
}

// configMap is a configuration in the API.
type configMap struct {
	client          kubernetes.Interface
	namespace, name string
}

func (c configMap) read(ctx context.Context) document {
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	object, err := c.client.CoreV1().ConfigMaps(c.namespace).Get(ctx, c.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return c.absent()
	}
	if err != nil {
		return c.missing(err)
	}
	return c.document(object)
}

// readPatience bounds the first look at the ConfigMap.
const readPatience = 15 * time.Second

func (c configMap) document(object *corev1.ConfigMap) document {
	text, ok := object.Data[configurationKey]
	if !ok {
		d := c.missing(fmt.Errorf("the ConfigMap has no key %s", configurationKey))
		d.object.UID, d.object.ResourceVersion = object.UID, object.ResourceVersion
		return d
	}
	d := c.missing(nil)
	d.text, d.object.UID, d.object.ResourceVersion = []byte(text), object.UID, object.ResourceVersion
	return d
}

func (c configMap) missing(problem error) document {
	return document{place: "ConfigMap " + c.namespace + "/" + c.name, problem: problem, object: &corev1.ObjectReference{
		APIVersion: "v1", Kind: "ConfigMap", Namespace: c.namespace, Name: c.name,
	}}
}

// absent is what there is without the ConfigMap.
func (c configMap) absent() document {
	d := c.missing(errors.New("there is no such ConfigMap"))
	d.isAbsent = true
	return d
}

func (c configMap) watch(ctx context.Context, last document, changed func(document)) {
	factory := informers.NewSharedInformerFactoryWithOptions(c.client, 0, informers.WithNamespace(c.namespace),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) {
			options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, c.name).String()
			// The cache of an API server may be minutes behind what was read at the start, which must not be undone.
			if options.ResourceVersion == "0" {
				options.ResourceVersion = ""
			}
		}))
	seen := func(o any) {
		object, ok := o.(*corev1.ConfigMap)
		// The first list shows again what was read at the start.
		if ok && (last.object == nil || object.ResourceVersion != last.object.ResourceVersion) {
			last = c.document(object)
			changed(last)
		}
	}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    seen,
		UpdateFunc: func(_, now any) { seen(now) },
		DeleteFunc: func(any) {
			last = c.absent()
			changed(last)
		},
	}
	if _, err := factory.Core().V1().ConfigMaps().Informer().AddEventHandler(handler); err != nil {
		changed(c.missing(fmt.Errorf("watch: %w", err)))
		return
	}
	factory.StartWithContext(ctx)
	<-ctx.Done()
	factory.Shutdown()
}
