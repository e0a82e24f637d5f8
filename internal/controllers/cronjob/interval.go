package cronjob

import (
	"fmt"
	"time"

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

// ValidateInterval refuses a schedule whose runs are closer together than a bound, which is a minute at most: the five fields of
// a schedule cannot ask for more. One that cannot be read is left to Validate. Zero allows all.
func ValidateInterval(cronJob *batch.CronJob, shortest time.Duration) field.ErrorList {
	times, err := parse(cronJob.Spec.Schedule, nil)
	if err != nil {
		return nil
	}
	every, is := times.schedule.(cron.ConstantDelaySchedule)
	if !is || every.Delay >= shortest {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "schedule"), cronJob.Spec.Schedule,
		fmt.Sprintf("asks for a run every %s; runs must be at least %s apart (--shortest-cronjob-interval)", every.Delay, shortest))}
}
