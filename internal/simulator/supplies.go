package simulator

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/storage/ephemeral"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"hekla.sh/hekla/internal/simulator/manifests"
	"hekla.sh/hekla/pkg/apis/batch/builder"
	batchv1alpha1 "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/supplies"
)

// provisioner holds the volumes and devices of a simulation, and stands in for the controllers that make and bind them.
type provisioner struct {
	set    func(supplies.Object)
	remove func(supplies.Object)
	known  map[supplies.Key]supplies.Object
	// templates are what claims of devices are made from.
	templates map[types.NamespacedName]*resourcev1.ResourceClaimTemplate
}

func newProvisioner(s *simulation) *provisioner {
	return &provisioner{known: map[supplies.Key]supplies.Object{}, templates: s.input.Templates,
		set:    func(o supplies.Object) { s.set(o) },
		remove: func(o supplies.Object) { s.drop(o) }}
}

func supplyKey(o supplies.Object) supplies.Key {
	return supplies.Key{Kind: supplies.KindOf(o), NamespacedName: keyOf(o)}
}

// put shows an object as it is now.
func (s *provisioner) put(o supplies.Object) {
	s.known[supplyKey(o)] = o
	s.set(o)
}

func (s *provisioner) drop(o supplies.Object) {
	delete(s.known, supplyKey(o))
	s.remove(o)
}

func get[T supplies.Object](s *provisioner, kind supplies.Kind, name types.NamespacedName) (o T, ok bool) {
	o, ok = s.known[supplies.Key{Kind: kind, NamespacedName: name}].(T)
	return o, ok
}

// begin takes in what the input has, and binds the claims that wait for no pod.
func (s *provisioner) begin(input []supplies.Object) {
	for _, o := range input {
		s.put(o.DeepCopyObject().(supplies.Object))
	}
	for _, o := range input {
		if claim, ok := get[*corev1.PersistentVolumeClaim](s, supplies.VolumeClaim, keyOf(o)); ok && supplies.KindOf(o) == supplies.VolumeClaim {
			s.bindEarly(claim)
		}
	}
}

// make makes a claim as a controller would, with the default StorageClass if it names none.
func (s *provisioner) make(namespace, name string, owner types.UID, spec *corev1.PersistentVolumeClaimSpec) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name,
		UID: types.UID("PersistentVolumeClaim " + name + " of " + string(owner))}, Spec: *spec.DeepCopy()}
	if _, exists := s.known[supplyKey(claim)]; exists {
		return
	}
	manifests.CompleteClaim(claim, slices.Collect(maps.Values(s.known)))
	s.put(claim)
	s.bindEarly(claim)
}

// bindAll binds the claims that wait for no pod any more.
func (s *provisioner) bindAll() {
	for _, key := range s.sortedKeys() {
		if claim, ok := s.known[key].(*corev1.PersistentVolumeClaim); ok {
			s.bindEarly(claim)
		}
	}
}

// bindEarly does what the controller of volumes does with a claim that waits for no pod: the claim gets the volume
// that it names or that names it, another one that is there, or one that is made.
func (s *provisioner) bindEarly(claim *corev1.PersistentVolumeClaim) {
	if metav1.HasAnnotation(claim.ObjectMeta, storagehelpers.AnnBindCompleted) {
		return
	}
	if name := claim.Spec.VolumeName; name != "" {
		volume, ok := get[*corev1.PersistentVolume](s, supplies.Volume, types.NamespacedName{Name: name})
		if ok && (volume.Spec.ClaimRef == nil || storagehelpers.IsVolumeBoundToClaim(volume, claim)) {
			s.bind(claim, name)
		}
		return
	}
	class, hasClass := get[*storagev1.StorageClass](s, supplies.StorageClass, types.NamespacedName{Name: storagehelpers.GetPersistentVolumeClaimClass(claim)})
	waitsForPod := hasClass && class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
	volume, err := storagehelpers.FindMatchingVolume(claim, s.volumes(), nil, nil, waitsForPod, true)
	switch {
	case err != nil: // the API server would refuse its selector
	case volume != nil:
		s.bind(claim, volume.Name)
	case hasClass && !waitsForPod && class.Provisioner != storagehelpers.NotSupportedProvisioner:
		s.bind(claim, "")
	}
}

// volumes returns the volumes by name.
func (s *provisioner) volumes() (all []*corev1.PersistentVolume) {
	for _, o := range s.known {
		if volume, is := o.(*corev1.PersistentVolume); is {
			all = append(all, volume)
		}
	}
	slices.SortFunc(all, func(a, b *corev1.PersistentVolume) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// bind binds a claim to a volume; with "" one is made for it, which can be used anywhere.
func (s *provisioner) bind(claim *corev1.PersistentVolumeClaim, name string) {
	claim = claim.DeepCopy()
	volume, ok := get[*corev1.PersistentVolume](s, supplies.Volume, types.NamespacedName{Name: name})
	if ok {
		volume = volume.DeepCopy()
	} else {
		name = "made-for-" + claim.Namespace + "-" + claim.Name
		volume = &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("PersistentVolume " + string(claim.UID))},
			Spec: corev1.PersistentVolumeSpec{StorageClassName: storagehelpers.GetPersistentVolumeClaimClass(claim),
				Capacity: claim.Spec.Resources.Requests, AccessModes: claim.Spec.AccessModes}}
	}
	volume.Spec.ClaimRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace,
		Name: claim.Name, UID: claim.UID}
	volume.Status.Phase = corev1.VolumeBound
	claim.Spec.VolumeName, claim.Status.Phase = name, corev1.ClaimBound
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, storagehelpers.AnnBindCompleted, "yes")
	s.put(volume)
	s.put(claim)
}

// prepare makes the claims of a pod that controllers make, and notes those of devices in its status.
func (s *provisioner) prepare(pod *corev1.Pod) {
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil {
			name := ephemeral.VolumeClaimName(pod, v)
			s.make(pod.Namespace, name, pod.UID, &v.Ephemeral.VolumeClaimTemplate.Spec)
			s.own(supplies.VolumeClaim, types.NamespacedName{Namespace: pod.Namespace, Name: name}, pod)
		}
	}
	for i := range pod.Spec.ResourceClaims {
		c := &pod.Spec.ResourceClaims[i]
		isMade := slices.ContainsFunc(pod.Status.ResourceClaimStatuses, func(made corev1.PodResourceClaimStatus) bool { return made.Name == c.Name })
		if c.ResourceClaimTemplateName == nil || isMade {
			continue
		}
		template := s.templates[types.NamespacedName{Namespace: pod.Namespace, Name: *c.ResourceClaimTemplateName}]
		if template == nil {
			continue
		}
		name := pod.Name + "-" + c.Name
		s.put(&resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: name,
			UID: types.UID("ResourceClaim " + name + " of " + string(pod.UID))}, Spec: *template.Spec.Spec.DeepCopy()})
		s.own(supplies.DeviceClaim, types.NamespacedName{Namespace: pod.Namespace, Name: name}, pod)
		pod.Status.ResourceClaimStatuses = append(pod.Status.ResourceClaimStatuses, corev1.PodResourceClaimStatus{Name: c.Name, ResourceClaimName: &name})
	}
}

// own makes a claim that was made for a pod the pod's own.
func (s *provisioner) own(kind supplies.Kind, name types.NamespacedName, pod *corev1.Pod) {
	claim := s.known[supplies.Key{Kind: kind, NamespacedName: name}]
	if metav1.GetControllerOfNoCopy(claim) != nil {
		return
	}
	claim = claim.DeepCopyObject().(supplies.Object)
	claim.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(pod, corev1.SchemeGroupVersion.WithKind("Pod"))})
	s.put(claim)
}

// prepareJob makes the claims that a Job asks for.
func (s *provisioner) prepareJob(j *batchv1alpha1.Job) {
	for v := range j.Spec.Volumes {
		if spec := j.Spec.Volumes[v].VolumeClaim; spec != nil {
			s.make(j.Namespace, builder.ClaimName(j, v), j.UID, spec)
		}
	}
}

// carryOut writes what a pod takes besides room.
func (s *provisioner) carryOut(b *decision.Bind) {
	if b.Reservation == nil {
		return
	}
	for i := range b.Reservation.Volumes {
		v := &b.Reservation.Volumes[i]
		if claim, ok := get[*corev1.PersistentVolumeClaim](s, supplies.VolumeClaim, v.Claim); ok && claim.Spec.VolumeName == "" {
			s.bind(claim, v.Volume)
		}
	}
	for i := range b.Reservation.Devices {
		d := &b.Reservation.Devices[i]
		if _, ok := get[*resourcev1.ResourceClaim](s, supplies.DeviceClaim, d.Claim); !ok && d.Made != nil {
			s.put(d.Made.DeepCopy())
		}
		if claim, ok := get[*resourcev1.ResourceClaim](s, supplies.DeviceClaim, d.Claim); ok {
			claim = claim.DeepCopy()
			claim.Status.Allocation = cmp.Or(claim.Status.Allocation, d.Allocation)
			claim.Status.ReservedFor = append(claim.Status.ReservedFor,
				resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: b.Pod.Name, UID: b.UID})
			s.put(claim)
		}
	}
}

// giveBack gives back what a pod had that is gone: what was made for it goes with it, and devices that no other pod
// uses are free.
func (s *provisioner) giveBack(pod *corev1.Pod) {
	for _, key := range s.sortedKeys() {
		o := s.known[key]
		if owner := metav1.GetControllerOfNoCopy(o); owner != nil && owner.UID == pod.UID {
			s.drop(o)
			continue
		}
		claim, ok := o.(*resourcev1.ResourceClaim)
		isUser := func(r resourcev1.ResourceClaimConsumerReference) bool { return r.UID == pod.UID }
		if !ok || !slices.ContainsFunc(claim.Status.ReservedFor, isUser) {
			continue
		}
		claim = claim.DeepCopy()
		if claim.Status.ReservedFor = slices.DeleteFunc(claim.Status.ReservedFor, isUser); len(claim.Status.ReservedFor) == 0 {
			claim.Status.Allocation = nil
		}
		s.put(claim)
	}
}

func (s *provisioner) sortedKeys() []supplies.Key {
	keys := make([]supplies.Key, 0, len(s.known))
	for key := range s.known {
		if key.Kind == supplies.VolumeClaim || key.Kind == supplies.DeviceClaim {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b supplies.Key) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cluster.CompareNames(a.NamespacedName, b.NamespacedName))
	})
	return keys
}
