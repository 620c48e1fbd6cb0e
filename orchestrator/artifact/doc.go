// Package artifact keeps the files that runs leave beside the database: captures
// and event logs. It gives them names, writes them under a temporary one, keeps
// those of valid runs with their hash, and says so in the run's record. A file
// that cannot be kept never costs a run. It must not know what is in the files,
// nor how runs are carried out.
package artifact
