import type { Span } from '../../../db/detection/spans.ts'
import type { ExemplarCategory, KnownExemplar } from '../../../db/guardrails/exemplars.ts'

/** A place of a text that means what an exemplar means. `similarity` is the cosine, `confidence` what it is worth. */
export type Similar = Span & {
  similarity: number
  confidence: number
  category: ExemplarCategory
  /** The id of the team's exemplar, or the name of one that comes with the service. */
  exemplarId: string
  /** How the team has called its exemplar. */
  exemplarName?: string
  /** Whether the injection detector flags this place too, at its default sensitivity. */
  corroborated: boolean
}

/** What a thread that compares meanings is asked for: what in a text is similar, or the embedding of an exemplar. */
export type SemanticJob =
  | { similar: { text: string; exemplars: KnownExemplar[] }; embedding?: undefined }
  | { embedding: { text: string }; similar?: undefined }

/** `error` says why there is neither. */
export type SemanticResult = {
  ms: number
  error?: string
  similar?: Similar[]
  embedding?: { model: string; rows: Uint8Array }
}
