/** The kinds of personal data that a check looks for unless `piiTypes` names some. */
export const PII_TYPES = ['email', 'ssn', 'credit_card', 'phone', 'ip_address', 'api_key', 'jwt'] as const

/** The kinds that a check may name: the last one is only looked for if it is named. */
export const NAMED_PII_TYPES = [...PII_TYPES, 'iban'] as const
export type PiiType = (typeof NAMED_PII_TYPES)[number]

/** The kinds of content that a check looks for, by the names that `contentCategories` has. */
export const CONTENT_TYPES = ['hate', 'harassment', 'violence', 'self_harm', 'sexual'] as const
export type ContentType = (typeof CONTENT_TYPES)[number]

/** The actions about a violation, except one of personal data, which is redacted. */
export const ACTIONS = ['BLOCKED', 'WARNED', 'LOGGED'] as const

/** How readily text counts as prompt injection unless the check says otherwise. */
export const DEFAULT_SENSITIVITY = 0.7

/** The names of a list that a text names, separated by commas, in the list's order; without a text the usual ones. */
export function readNames<const Name extends string>(
  all: readonly Name[],
  text: string | undefined,
  usual: readonly Name[] = all,
): Name[] {
  if (text === undefined) return [...usual]
  const given = splitKindNames(text)
  return all.filter((name) => given.includes(name))
}

/** The names in a text that has commas between them. */
export const splitKindNames = (text: string) => text.split(',').map((name) => name.trim())
