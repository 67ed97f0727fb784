import { expect, test } from 'vitest'
import { createRepository } from '../../support/connectors/github.ts'
import { type Asked, type Reply, useVendors } from '../../support/connectors/vendor.ts'
import { keep } from '../../support/keep.ts'
import { shareRunning } from '../../support/running.ts'

const host = await keep(shareRunning())
const start = useVendors(host)
const OURS = { owner: 'ada', repo: 'my.notes' }

async function startGithub(
  files: Record<string, string> = {},
  change: (asked: Asked, answer: () => Reply) => Reply = (_, answer) => answer(),
) {
  const repository = createRepository(files)
  const vendor = await start((asked) => change(asked, () => repository.answer(asked)))
  const act = (action: string, input: object, more: Record<string, unknown> = {}) =>
    vendor.act({ connector: 'github', action, input: { ...OURS, ...input }, ...more })
  return { ...repository, vendor, act }
}

/** Loses the answer to the first request with this method; `after` happens then, before the next attempt. */
function losing(method: string, after = () => {}) {
  let lost = false
  return (asked: Asked, answer: () => Reply): Reply => {
    const reply = answer()
    if (lost || asked.method !== method) return reply
    lost = true
    after()
    return 'cut'
  }
}

test('files are read, listed and downloaded', async () => {
  const { act, vendor } = await startGithub({ 'docs/a.md': '# A', 'docs/b.json': '{}', 'top.txt': 'top' })
  const { output } = await act('getFile', { path: 'docs/a.md', ref: 'dev' })
  expect(output).toMatchObject({ path: 'docs/a.md', content: Buffer.from('# A').toString('base64') })
  expect(vendor.asked[0]).toMatchObject({
    ...{ method: 'GET', path: '/repos/ada/my.notes/contents/docs%2Fa.md' },
    headers: { accept: 'application/vnd.github+json', 'x-github-api-version': '2022-11-28' },
  })
  expect(vendor.asked[0]!.query.get('ref')).toBe('dev')
  expect((await act('listFiles', { path: 'docs' })).output.value).toHaveLength(2)
  expect((await act('listFiles', {})).output.value).toHaveLength(3)
  expect(vendor.asked.at(-1)?.path).toBe('/repos/ada/my.notes/contents')
  const file = await act('downloadFile', { path: 'docs/b.json' })
  expect(file.output.file).toMatchObject({ name: 'b.json', mimeType: 'application/octet-stream', bytes: 2 })
  expect((await act('getFile', { path: '../other' })).status).toBe('FAILED')
  expect((await act('getFile', { path: 'none' })).error).toMatch(/^GitHub responded with 404: Not Found/)
})

test('a folder with more entries than GitHub lists is a failure', async () => {
  const { act } = await startGithub({}, () => ({
    json: Array.from({ length: 1_000 }, (_, at) => ({ name: at })),
  }))
  expect((await act('listFiles', { path: 'many' })).error).toMatch(/lists only the first 1000/)
})

test('files are committed: new ones, with other content, and gone', async () => {
  const { act, read, commits, vendor } = await startGithub({ 'a.txt': 'old' })
  const made = await act('createFile', { path: 'b/ü.txt', text: 'héllo', message: 'Add', branch: 'dev' })
  expect(made.output).toMatchObject({ content: { path: 'b/ü.txt' }, commit: { sha: 'c1' } })
  expect(vendor.asked[0]!.json).toEqual({
    ...{ message: 'Add', branch: 'dev', content: Buffer.from('héllo').toString('base64') },
  })
  expect((await act('createFile', { path: 'a.txt', text: 'x', message: 'Add' })).error).toMatch(
    /422.*supplied/s,
  )
  await act('editFile', { path: 'a.txt', base64: Buffer.from('new').toString('base64'), message: 'Edit' })
  expect(read('a.txt')).toBe('new')
  await act('writeFile', { path: 'c.txt', text: 'c', message: 'Write' })
  await act('writeFile', { path: 'c.txt', text: 'cc', message: 'Write again' })
  expect(read('c.txt')).toBe('cc')
  const same = await act('editFile', { path: 'a.txt', text: 'new', message: 'Nothing' })
  expect(same.output).toMatchObject({ content: { path: 'a.txt' }, commit: null })
  expect((await act('deleteFile', { path: 'a.txt', message: 'Delete' })).output.content).toBeNull()
  expect(commits).toEqual(['Add', 'Edit', 'Write', 'Write again', 'Delete'])
  expect((await act('editFile', { path: 'none', text: 'x', message: 'm' })).error).toMatch(/404/)
  expect((await act('createFile', { path: 'x', message: 'm' })).error).toMatch(
    /must have text, base64 or file/,
  )
})

test.each([
  ['createFile', {}, 'PUT'],
  ['editFile', { 'a.txt': 'old' }, 'PUT'],
  ['writeFile', { 'a.txt': 'old' }, 'PUT'],
  ['deleteFile', { 'a.txt': 'old' }, 'DELETE'],
] as const)('%s is one commit, though its answer is lost', async (action, files, method) => {
  const { act, commits, read } = await startGithub(files, losing(method))
  const isDelete = action === 'deleteFile'
  const { status, retries, output } = await act(action, {
    ...{ path: 'a.txt', message: 'Once' },
    ...(isDelete ? {} : { text: 'new' }),
  })
  expect({ status, retries }).toEqual({ status: 'SUCCESS', retries: 1 })
  expect(commits).toEqual(['Once'])
  expect(read('a.txt')).toBe(isDelete ? undefined : 'new')
  if (!isDelete) {
    expect(output).toMatchObject({
      content: { path: 'a.txt' },
      commit: { sha: 'c1', message: 'Once', url: 'u', committer: { name: 'Ada' } },
    })
  }
})

test('a commit whose answer is lost is unknown where another one came after it', async () => {
  const github = await startGithub(
    { 'a.txt': 'old' },
    losing('PUT', () => github.write.set('a.txt', Buffer.from('of another'))),
  )
  const input = { ...OURS, path: 'a.txt', text: 'new', message: 'Once' }
  const config = { connector: 'github', action: 'editFile', input }
  const { status, error, output } = await github.vendor.act(config, { onError: 'CONTINUE' })
  expect(status).toBe('FAILED')
  expect(output.error.type).toBe('OutcomeUnknown')
  expect(error).toMatch(/look there before/)
  expect(github.read('a.txt')).toBe('of another')
})

test('a change in between is not written over', async () => {
  const github = await startGithub({ 'a.txt': 'old' }, (asked, answer) => {
    if (asked.method === 'PUT') github.write.set('a.txt', Buffer.from('of another'))
    return answer()
  })
  expect((await github.act('editFile', { path: 'a.txt', text: 'new', message: 'm' })).error).toMatch(/409/)
  expect(github.read('a.txt')).toBe('of another')
})

const page = (asked: Asked, key?: string): Reply => {
  const at = Number(asked.query.get('page') ?? 1)
  const entries = [{ id: at * 2 }, { id: at * 2 + 1 }]
  const link: Record<string, string> =
    at < 3 ? { link: `<${`http://${asked.headers.host}`}${asked.path}?page=${at + 1}>; rel="next"` } : {}
  return { headers: link, json: key === undefined ? entries : { total_count: 6, [key]: entries } }
}

test('lists are read page after page, as GitHub links them', async () => {
  const { act, vendor } = await startGithub({}, (asked) =>
    page(asked, asked.path.endsWith('/workflows') ? 'workflows' : undefined),
  )
  const { output } = await act('listIssues', { state: 'all', labels: 'bug', limit: 3 })
  expect(output.value).toEqual([{ id: 2 }, { id: 3 }, { id: 4 }])
  expect(Object.fromEntries(vendor.asked[0]!.query)).toEqual({ state: 'all', labels: 'bug', per_page: '3' })
  expect((await act('listReleases', {})).output.value).toHaveLength(6)
  expect((await act('listWorkflows', {})).output.value).toHaveLength(6)
  const repositories = { connector: 'github', action: 'listUserRepositories', input: { user: 'ada' } }
  expect((await vendor.act(repositories)).output.value).toHaveLength(6)
  expect(vendor.asked.at(-1)?.path).toBe('/users/ada/repos')
})

test.each([
  ['createIssue', { title: 'T', labels: ['bug'] }, 'POST', 'issues', { title: 'T', labels: ['bug'] }],
  ['editIssue', { issue: 4, state: 'closed' }, 'PATCH', 'issues/4', { state: 'closed' }],
  ['getIssue', { issue: 4 }, 'GET', 'issues/4', {}],
  ['commentOnIssue', { issue: 4, body: 'x' }, 'POST', 'issues/4/comments', { body: 'x' }],
  ['lockIssue', { issue: 4, reason: 'spam' }, 'PUT', 'issues/4/lock', { lock_reason: 'spam' }],
  ['createRelease', { tag_name: 'v1', draft: true }, 'POST', 'releases', { tag_name: 'v1', draft: true }],
  ['mergePull', { pull: 5, merge_method: 'squash' }, 'PUT', 'pulls/5/merge', { merge_method: 'squash' }],
  ['createReview', { pull: 5, event: 'APPROVE' }, 'POST', 'pulls/5/reviews', { event: 'APPROVE' }],
  [
    'dispatchWorkflow',
    { workflow: 'ci.yml', ref: 'main' },
    'POST',
    'actions/workflows/ci.yml/dispatches',
    { ref: 'main' },
  ],
] as const)('%s asks what the API documents', async (action, input, method, path, json) => {
  const { act, vendor } = await startGithub({}, () => ({ json: { id: 1 } }))
  expect((await act(action, input)).output).toEqual({ id: 1 })
  expect(vendor.asked[0]).toMatchObject({ method, path: `/repos/ada/my.notes/${path}` })
  expect(vendor.asked[0]!.json).toEqual(json)
})

test('a comment is never sent twice, and is sent after a limit', async () => {
  const cut = await startGithub({}, () => 'cut')
  expect((await cut.act('commentOnIssue', { issue: 4, body: 'x' })).error).toMatch(
    /no answer came that says so/,
  )
  expect(cut.vendor.asked).toHaveLength(1)
  const busy = await startGithub({}, () =>
    busy.vendor.asked.length === 1
      ? { status: 403, headers: { 'retry-after': '0' }, json: { message: 'secondary rate limit' } }
      : { json: { id: 1 } },
  )
  expect(await busy.act('commentOnIssue', { issue: 4, body: 'x' })).toMatchObject({
    status: 'SUCCESS',
    retries: 1,
  })
})
