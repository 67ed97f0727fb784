declare module 'vader-sentiment' {
  /** Scores of an English text; `compound` is from -1 to 1. */
  export const SentimentIntensityAnalyzer: {
    polarity_scores(text: string): { compound: number; pos: number; neu: number; neg: number }
  }
}
