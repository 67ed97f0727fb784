import * as v from 'valibot'
import type { TextKind } from '../expressions/rules.ts'
import { described, strictObject } from '../object.ts'
import { computed, conditionAt, conditionField, textField, wholeNumber } from './fields.ts'

/** The most pages of one request. */
export const MAX_PAGES = 10_000

/** How many pages a request may have that does not say it. */
export const USUAL_PAGES = 1_000

/** The most bytes of all pages together, and what they may have unless it is set. */
const MAX_PAGES_BYTES = 64 * 1024 * 1024
export const USUAL_PAGES_BYTES = 8 * 1024 * 1024

const MAX_PAGE_PAUSE_MS = 3_600_000

const flag = v.boolean('must be true or false')

const parameterField = strictObject(
  described(
    {
      in: v.optional(v.picklist(['query', 'headers', 'body'], 'must be query, headers or body'), 'query'),
      name: textField,
      value: v.unknown(),
    },
    {
      in: 'Where it is set: in the query, the headers or the body.',
      name: 'Its name; one of the same name that the request has is replaced.',
      value: 'Its value for each page, with $response, $pageCount and $request.',
    },
  ),
)

/** How a request goes on with further pages. */
export const paginationField = v.pipe(
  strictObject(
    described(
      {
        url: v.optional(textField),
        parameters: v.optional(
          v.pipe(
            v.array(parameterField, 'must be a list'),
            v.minLength(1, 'must not be empty'),
            v.maxLength(20, 'must have at most 20 entries'),
          ),
        ),
        items: v.optional(textField),
        until: v.optional(conditionField),
        untilEmpty: v.optional(flag),
        endStatus: v.optional(
          v.pipe(
            v.array(wholeNumber(100, 599), 'must be a list of statuses'),
            v.maxLength(50, 'must have at most 50 entries'),
          ),
        ),
        errorsEnd: v.optional(flag),
        maxPages: v.optional(computed(wholeNumber(1, MAX_PAGES))),
        whenMore: v.optional(v.picklist(['fail', 'stop'], 'must be fail or stop')),
        maxBytes: v.optional(wholeNumber(1, MAX_PAGES_BYTES)),
        pauseMs: v.optional(computed(wholeNumber(0, MAX_PAGE_PAUSE_MS))),
        repeats: v.optional(flag),
      },
      {
        url: 'The address of the next page, which reads $response: nothing ends it. It may be relative.',
        parameters: 'What is set anew for each page, the first one too: a number, or a cursor of $response.',
        items: 'The items of a page, which reads $response. Without it each page is one: its body.',
        until: 'Ends with the page for which this holds; it reads $response and $pageCount.',
        untilEmpty: 'Ends with a page without items, or without `items` with an empty body.',
        endStatus: 'Statuses by which an answer says that there are no more pages.',
        errorsEnd: 'Lets an answer with a status of 400 or more be the last page, if `until` holds for it.',
        maxPages: `The most pages, up to ${MAX_PAGES}. ${USUAL_PAGES} unless it is set.`,
        whenMore: 'What follows if there are more than `maxPages`: the node fails, unless it is stop.',
        maxBytes: 'The most bytes of all pages together. 8 MB unless it is set.',
        pauseMs: 'How long it waits between two pages, in milliseconds.',
        repeats: 'Lets the same request be made again, as long as its answers are not the same five times.',
      },
    ),
  ),
  v.rawCheck(({ dataset, addIssue }) => {
    if (!dataset.typed) return
    const given = dataset.value
    const add = (key: string, message: string) => {
      const path = { type: 'object', origin: 'value', input: given, key, value: undefined } as const
      addIssue({ message, path: [path as unknown as v.ObjectPathItem] })
    }
    if (given.url === undefined && given.parameters === undefined)
      add('url', 'is required, unless parameters say how a page differs from the one before')
    const ends = [given.url, given.until, given.untilEmpty, given.endStatus, given.maxPages]
    if (ends.every((end) => end === undefined))
      add('until', 'is required, unless untilEmpty, endStatus or maxPages say where the pages end')
  }),
)
export type Pagination = v.InferOutput<typeof paginationField>

/** The settings of a request of which all pages are read. */
const settingsOf = ({ pagination }: Record<string, unknown>): Partial<Pagination> => Object(pagination)

/** The texts of a pagination know the page before. */
export const readPageText = (path: string): TextKind | undefined =>
  path.startsWith('pagination.') ? 'page' : undefined

export const listPageConditions = (config: Record<string, unknown>) =>
  conditionAt('pagination.until', settingsOf(config).until)
