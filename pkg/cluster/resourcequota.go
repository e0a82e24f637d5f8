package cluster

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"hekla.sh/hekla/pkg/cluster/internal/priority"
	"hekla.sh/hekla/pkg/cluster/wake"
)

// Quotas returns the ResourceQuotas of a namespace, by name. The caller must not change them.
func (c *Cluster) Quotas(namespace string) []*corev1.ResourceQuota { return c.quotas[namespace] }

func (c *Cluster) setQuota(object *corev1.ResourceQuota) {
	list := c.quotas[object.Namespace]
	i, found := slices.BinarySearchFunc(list, object.Name, func(q *corev1.ResourceQuota, name string) int { return cmp.Compare(q.Name, name) })
	rationed := priority.SpeaksOfClasses(object)
	switch {
	case !found:
		c.quotas[object.Namespace] = slices.Insert(list, i, object)
	case equality.Semantic.DeepEqual(list[i].Spec, object.Spec) && equality.Semantic.DeepEqual(list[i].Status, object.Status):
		list[i] = object
		return
	default:
		rationed = !priority.RationsAlike(list[i], object)
		list[i] = object
	}
	c.world.Note(wake.QuotaShown)
	if rationed {
		c.requoted[object.Namespace] = struct{}{}
	}
}

func (c *Cluster) dropQuota(object *corev1.ResourceQuota) {
	before := c.quotas[object.Namespace]
	after := slices.DeleteFunc(slices.Clone(before), func(q *corev1.ResourceQuota) bool {
		return q.Name == object.Name && q.UID == object.UID
	})
	switch len(after) {
	case len(before):
		return
	case 0:
		delete(c.quotas, object.Namespace)
	default:
		c.quotas[object.Namespace] = after
	}
	c.world.Note(wake.QuotaShown)
	c.requoted[object.Namespace] = struct{}{}
}
