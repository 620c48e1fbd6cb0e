// Package voice says how a listener would judge a stream of speech from what
// became of its packets: a playout buffer decides which of them are played and
// when, and the E-model of ITU-T G.107 (06/2015) turns delay and loss into the
// rating R and the mean opinion score.
//
// It is arithmetic on delays. It must not know transports, networks or clocks.
//
// # What is assumed
//
// Everything but delay and loss has G.107's default value (table 3): handsets,
// room noise, sidetone, an echo return loss of 65 dB at the talker's side and 110
// dB at the listener's, an advantage factor of 0. The way back has the same delay
// as the way there, so that echoes travel twice as long. Equipment is G.113's: the
// codec's Ie and Bpl of its appendix I. The codec's own delay is the speech in a
// packet and what the encoder looks ahead; processing takes no time.
//
// The model is a planning tool. It was validated for delays up to about half a
// second and for losses up to some tens of percent; a rating beyond says "bad" and
// no more.
package voice
