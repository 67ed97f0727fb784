import { expect, test } from 'vitest'
import { createDrive } from '../../support/connectors/drive.ts'
import { type Asked, type Reply, useVendors } from '../../support/connectors/vendor.ts'
import { keep } from '../../support/keep.ts'
import { shareRunning } from '../../support/running.ts'

const host = await keep(shareRunning())
const start = useVendors(host)

async function startDrive(
  files: Parameters<typeof createDrive>[0] = [],
  change: (asked: Asked, answer: () => Reply) => Reply = (_, answer) => answer(),
) {
  const drive = createDrive(files)
  const vendor = await start((asked) => change(asked, () => drive.answer(asked)))
  const act = (action: string, input: object, more: Record<string, unknown> = {}) =>
    vendor.act({ connector: 'google-drive', action, input, ...more })
  return { ...drive, vendor, act }
}
const shown = ({ asked }: { asked: Asked[] }) => asked.map(({ method, path }) => `${method} ${path}`)
const REPORT = { id: 'f1', name: 'report.txt', mimeType: 'text/plain', content: 'the text' }
const DOCUMENT = {
  id: 'd1',
  name: 'Plan',
  mimeType: 'application/vnd.google-apps.document',
  content: 'a plan',
}

test('a text becomes a file, once, whichever answer is lost', async () => {
  for (const at of ['POST', 'PATCH']) {
    let lost = false
    const { files, act, vendor } = await startDrive([], ({ method }, answer) => {
      const reply = answer()
      if (lost || method !== at) return reply
      lost = true
      return 'cut'
    })
    const { status, output, retries } = await act('createText', {
      ...{ name: 'note.md', text: 'héllo', mimeType: 'text/markdown', folder: 'dir' },
      properties: { a: 'b' },
    })
    expect({ status, retries }).toEqual({ status: 'SUCCESS', retries: 1 })
    expect(output).toMatchObject({ id: 'id-1', name: 'note.md', parents: ['dir'], properties: { a: 'b' } })
    expect([...files.values()].map(({ content, type }) => [content, type])).toEqual([
      ['héllo', 'text/markdown; charset=utf-8'],
    ])
    expect(shown(vendor)[0]).toBe('GET /drive/v3/files/generateIds')
  }
})

test('files are got as they are, documents of Google in another format', async () => {
  const { act, vendor } = await startDrive([REPORT, DOCUMENT])
  const { output } = await act('downloadFile', { file: 'f1' })
  expect(output.file).toMatchObject({ name: 'report.txt', mimeType: 'text/plain', bytes: 8 })
  const item = await act(
    'downloadFile',
    { file: 'd1', documents: 'application/pdf' },
    { file: 'data', output: 'input' },
  )
  expect(item.output).toMatchObject({
    $binary: { data: { file: { name: 'Plan', mimeType: 'application/pdf' } } },
  })
  expect(vendor.asked.at(-1)?.path).toBe('/drive/v3/files/d1/export')
  expect((await act('downloadFile', { file: 'none' })).error).toMatch(/^Google Drive responded with 404/)
  const wrong = await act('getFile', { file: 'f1' }, { file: 'data' })
  expect(wrong.error).toMatch(/file is for actions that answer a file/)
})

test('a file of the execution is uploaded', async () => {
  const { files, vendor } = await startDrive()
  const id = await host.execute(
    await host.create({
      nodes: [
        { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
        {
          ...{ id: 'make', type: 'CONVERT_TO_FILE' },
          config: { format: 'text', data: 'in the file' },
        },
        {
          ...{ id: 'act', type: 'CONNECTOR' },
          config: {
            ...{ connector: 'google-drive', action: 'uploadFile', server: vendor.url },
            ...{ credentialId: vendor.credentialId, input: { file: '{{ $nodes.make }}', fields: 'id,name' } },
          },
        },
      ],
      edges: [
        { source: 'start', target: 'make' },
        { source: 'make', target: 'act' },
      ],
    } as never),
  )
  const ended = await host.ended(id)
  expect(ended.errorMessage).toBeNull()
  expect(ended.outputData).toEqual({ id: 'id-1', name: 'data.txt' })
  expect([...files.values()].map(({ name, content }) => [name, content])).toEqual([
    ['data.txt', 'in the file'],
  ])
})

test('files are listed page by page, and changed', async () => {
  const { act, files, vendor } = await startDrive(
    Array.from({ length: 5 }, (_, at) => ({ id: `f${at}`, name: `n${at}` })),
  )
  const { output } = await act('searchFiles', { query: "name contains 'n'", limit: 3 })
  expect(output.value).toEqual([0, 1, 2].map((at) => ({ id: `f${at}`, name: `n${at}` })))
  expect(Object.fromEntries(vendor.asked[0]!.query)).toMatchObject({
    ...{ q: "name contains 'n'", fields: 'nextPageToken,files(id,name)', pageSize: '3' },
    ...{ corpora: 'allDrives', includeItemsFromAllDrives: 'true', supportsAllDrives: 'true' },
  })
  expect((await act('searchFiles', {})).output.value).toHaveLength(5)
  expect((await act('moveFile', { file: 'f0', folder: 'dir' })).output.parents).toEqual(['dir'])
  expect((await act('updateFile', { file: 'f0', name: 'new' })).output.name).toBe('new')
  expect((await act('trashFile', { file: 'f1' })).output).toEqual({ id: 'f1' })
  expect(files.get('f1')?.trashed).toBe(true)
  expect((await act('copyFile', { file: 'f0', name: 'again' })).output).toMatchObject({
    id: 'copy',
    name: 'again',
  })
  expect((await act('createFolder', { name: 'dir', colour: '#ff0000' })).output).toMatchObject({
    ...{ name: 'dir', folderColorRgb: '#ff0000', mimeType: 'application/vnd.google-apps.folder' },
  })
  const access = { role: 'reader', type: 'user', emailAddress: 'a@example.com' }
  expect(
    (await act('shareFile', { file: 'f0', ...access, sendNotificationEmail: false })).output,
  ).toMatchObject(access)
  expect(vendor.asked.at(-1)?.query.get('sendNotificationEmail')).toBe('false')
  expect((await act('createDocument', { name: 'Doc', text: 'x' })).output.mimeType).toMatch(/document$/)
  expect((await act('createDocument', { name: 'Empty' })).output).toMatchObject({ name: 'Empty' })
  expect(vendor.asked.at(-1)?.method).toBe('POST')
})

test('a delete whose answer is lost has deleted, and one of nothing is a failure', async () => {
  let lost = false
  const { act, files } = await startDrive([REPORT], ({ method }, answer) => {
    const reply = answer()
    if (lost || method !== 'DELETE') return reply
    lost = true
    return 'cut'
  })
  expect(await act('deleteFile', { file: 'f1' })).toMatchObject({ status: 'SUCCESS', output: { id: 'f1' } })
  expect(files.size).toBe(0)
  expect((await act('deleteFile', { file: 'f1' })).error).toMatch(/404/)
})

test('a copy whose answer is lost is not made again', async () => {
  const { act, vendor } = await startDrive([REPORT], ({ method }, answer) =>
    method === 'POST' ? 'cut' : answer(),
  )
  expect((await act('copyFile', { file: 'f1' })).error).toMatch(/no answer came that says so/)
  expect(vendor.asked).toHaveLength(1)
})
