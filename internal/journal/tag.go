package journal

// TagVariable is the environment variable that carries the ownership tag into
// every process of a campaign.
const TagVariable = "HOPBED_TAG"
