// Package priority is the plugin that serves jobs of higher PriorityClass first, and within a job the pods of higher
// task priority.
package priority
