package job

import (
	"context"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// longestRefusal is the length to which the record of a refusal is cut, in bytes. A message of the API server may list every quota.
const longestRefusal = 1024

// noteRefusal writes to the PodGroup of a Job why the API server refuses its pods, and removes that once it does not. So the scheduler, which
// sees no Jobs, can say why the pods are missing.
func noteRefusal(ctx context.Context, c client.Client, group *scheduling.PodGroup, refused error) error {
	message := ""
	if refused != nil {
		message = refused.Error()
		message = strings.ToValidUTF8(message[:min(len(message), longestRefusal)], "")
	}
	if group.Annotations[scheduling.PodsRefusedKey] == message {
		return nil
	}
	changed := group.DeepCopy()
	if message == "" {
		delete(changed.Annotations, scheduling.PodsRefusedKey)
	} else {
		if changed.Annotations == nil {
			changed.Annotations = map[string]string{}
		}
		changed.Annotations[scheduling.PodsRefusedKey] = message
	}
	return client.IgnoreNotFound(c.Patch(ctx, changed, client.MergeFrom(group)))
}
