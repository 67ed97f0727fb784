import vader from 'vader-sentiment'

/** A longer text takes more than 3 ms, and says no more about the user's mood. */
export const MOST_SAID = 1_000

/**
 * How an English text sounds, from -1 (bad) to 1 (good), by the words of VADER (Hutto & Gilbert 2014). Texts in other
 * languages sound like nothing: 0.
 */
export function scoreSentiment(text: string): number {
  const { compound } = vader.SentimentIntensityAnalyzer.polarity_scores(text.slice(0, MOST_SAID))
  return Number.isFinite(compound) ? Math.min(1, Math.max(-1, compound)) : 0
}
