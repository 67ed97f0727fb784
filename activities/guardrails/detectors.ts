import { markPii } from '../../db/detection/pii/masked.ts'
import type { Finding } from '../../db/detection/spans.ts'
import type { TextView } from '../../db/detection/views.ts'
import type { ContentType, PiiType } from '../../workflows/guardrails/names.ts'
import { findContent } from './content/content.ts'
import { findInjection } from './injection/injection.ts'

/** What the detectors in threads are asked for. Those that are not named do not work. */
export type Detection = {
  PII_REDACTION?: { kinds: PiiType[] }
  PROMPT_INJECTION?: { sensitivity: number }
  CONTENT_FILTER?: { categories: ContentType[] }
}
export type DetectorName = keyof Detection

/** `views` are the readings of the text, which are made once for all detectors. */
type Detect<Options> = (text: string, views: () => TextView[], options: Options) => Finding[]

/**
 * One line a detector. They are pure: the same text gives the same findings, in time that is linear in its length. A
 * detector that is asked for and has no line is an error of its check.
 */
export const DETECTORS: { [Name in DetectorName]?: Detect<NonNullable<Detection[Name]>> } = {
  PII_REDACTION: (text, views, { kinds }) => markPii(text, new Set(kinds), views).findings,
  CONTENT_FILTER: (_, views, { categories }) => findContent(views(), new Set(categories)),
  PROMPT_INJECTION: (_, views, { sensitivity }) => findInjection(views(), sensitivity),
}
