import type { ActionSchema, ConnectorAction, ConnectorStep } from '../connector.ts'
import { limitInput, nameInput, objectInput, textInput } from '../schemas.ts'

export const repository = {
  owner: nameInput('Owner', 'The account or organization that owns it.'),
  repo: nameInput('Repository', 'The name of the repository.'),
}
export const REPO = '/repos/{{ $input.owner }}/{{ $input.repo }}'

/** A request as GitHub wants it. */
export const askGithub = (step: ConnectorStep): ConnectorStep => ({
  ...step,
  headers: { accept: 'application/vnd.github+json', 'x-github-api-version': '2022-11-28', ...step.headers },
})

/** Keys of the input that go on as they are. */
export const given = (...keys: string[]): Record<string, string> =>
  Object.fromEntries(keys.map((key) => [key, `{{ $input.${key} }}`]))

type Texts = [name: string, summary: string]

/** An action that is one request. */
export function request(
  safety: ConnectorAction['safety'],
  [name, summary]: Texts,
  [properties, required]: [Record<string, ActionSchema>, string[]],
  step: Omit<ConnectorStep, 'name'>,
): ConnectorAction {
  return {
    name,
    summary,
    safety,
    input: objectInput(properties, required),
    steps: [askGithub({ name: 'ask', ...step })],
  }
}

/** An action that reads a list, page after page. */
export function list(
  texts: Texts,
  [properties, required]: [Record<string, ActionSchema>, string[]],
  path: string,
  { items, query = {} }: { items?: string; query?: Record<string, string> } = {},
): ConnectorAction {
  const pages = { next: 'link', limit: '$input.limit', ...(items === undefined ? {} : { items }) } as const
  const most = '{{ $input.limit < 100 ? $input.limit : 100 }}'
  return request('REPEATABLE', texts, [{ ...properties, limit: limitInput() }, required], {
    ...{ method: 'GET', path, query: { ...query, per_page: most }, pages },
  })
}

export const OF_REPO = Object.keys(repository)
export const labels = {
  type: 'array',
  items: textInput('Label', 'The name of a label.'),
  title: 'Labels',
  description: 'The names of its labels.',
}
