import { MAX_PAGES } from '../../nodes/pagination.ts'
import type { ProblemReporter } from '../report.ts'
import { isTemplate, keepText, keepTexts, listObjects, plainText } from '../texts.ts'

type Fields = Record<string, unknown>

/** How the HTTP Request node goes on with further pages; undefined if it asks for one. */
export function readPagination(
  given: unknown,
  neverError: unknown,
  report: ProblemReporter,
): Fields | undefined {
  const pages = Object(Object(given).pagination) as Fields
  if (Object(given).pagination === undefined || pages.paginationMode === 'off') return undefined
  const byUrl = pages.paginationMode === 'responseContainsNextURL'
  return {
    ...(byUrl ? { url: keepText(pages.nextURL ?? '') } : { parameters: readParameters(pages) }),
    ...readEnd(pages, neverError === true, report),
    ...readLimit(pages),
    ...readInterval(pages),
    // n8n asks the same again, until the answers are the same.
    repeats: true,
  }
}

/** The parameters that are set anew for each page, in the query unless it says otherwise. */
function readParameters({ parameters }: Fields): Fields[] {
  const list = listObjects(Object(parameters).parameters).map(({ type = 'qs', name, value = '' }) => {
    const key = plainText(name) ?? ''
    if (isTemplate(name)) throw new Error('an expression gives the name of a parameter of its pages')
    if (key === '' || value === '') throw new Error('a parameter of its pages has no name or no value')
    return { in: type === 'qs' ? 'query' : String(type), name: key, value: keepTexts(value) }
  })
  if (list.length === 0) throw new Error('it asks for pages, and no parameter says for which')
  return list
}

/** Where the pages end. An empty answer ends them unless it says otherwise. */
function readEnd(pages: Fields, neverError: boolean, report: ProblemReporter): Fields {
  const { paginationCompleteWhen: when = 'responseIsEmpty' } = pages
  if (when === 'receiveSpecificStatusCodes') {
    const statuses = String(plainText(pages.statusCodesWhenComplete ?? '') ?? '').split(',')
    const endStatus = statuses.map((text) => Number.parseInt(text.trim(), 10))
    return { endStatus: endStatus.filter((status) => status >= 100 && status <= 599) }
  }
  if (when === 'responseIsEmpty') {
    const message =
      'In n8n an answer with an error and an empty body ends the pages, and the node goes on. Here the node fails.'
    report('parameter', 'parameters.options.pagination', message, pages)
    return { until: `={{ !(${IS_FULL}) }}` }
  }
  const text = pages.completeExpression
  if (!isTemplate(text)) throw new Error('no expression says where its pages end')
  return neverError ? { until: text, errorsEnd: true } : { until: text }
}

const IS_FULL = 'Array.isArray($response.body) ? $response.body.length : !!$response.body'

/** n8n has no limit unless one is set. */
function readLimit({ limitPagesFetched, maxRequests = 100 }: Fields): Fields {
  if (limitPagesFetched !== true) return { maxPages: MAX_PAGES }
  if (isTemplate(maxRequests)) return { maxPages: maxRequests, whenMore: 'stop' }
  const most = Math.floor(Number(plainText(maxRequests)))
  if (!(most >= 1 && most <= MAX_PAGES)) return { maxPages: MAX_PAGES }
  return { maxPages: most, whenMore: 'stop' }
}

function readInterval({ requestInterval = 0 }: Fields): Fields {
  if (isTemplate(requestInterval)) return { pauseMs: requestInterval }
  const ms = Math.min(3_600_000, Math.max(0, Math.round(Number(plainText(requestInterval)) || 0)))
  return ms === 0 ? {} : { pauseMs: ms }
}

/** Pages are no files, and after an error n8n asks for no further page, whatever the node says of errors. */
export function shapePages(response: Fields): Fields {
  if (response.format === 'file') throw new Error('it asks for pages that are files')
  const { neverError: _, ...rest } = response
  return rest
}
