import { expect, test } from 'vitest'
import { importDocument } from './importing.ts'

const values = [
  { fieldLabel: 'Your name', requiredField: true, placeholder: 'Ada', defaultValue: 'x {{ y }}' },
  { fieldLabel: 'Age', fieldType: 'number', defaultValue: '7' },
  { fieldLabel: 'Mail', fieldType: 'email' },
  { fieldLabel: 'Day', fieldType: 'date' },
  { fieldLabel: 'Story', fieldType: 'textarea' },
  { fieldLabel: 'Key', fieldType: 'password' },
  {
    fieldLabel: 'Size',
    fieldType: 'dropdown',
    fieldOptions: { values: [{ option: 's' }, { option: 'm' }] },
    defaultValue: 'm',
  },
  {
    fieldLabel: 'Old',
    fieldType: 'dropdown',
    multiselect: true,
    fieldOptions: { values: [{ option: 'a' }] },
  },
  {
    fieldLabel: 'Days',
    fieldType: 'checkbox',
    fieldOptions: { values: [{ option: '1' }, { option: '2' }] },
    limitSelection: 'range',
    minSelections: 1,
    maxSelections: 2,
    defaultValue: '2, 3',
  },
  { fieldLabel: 'One', fieldType: 'radio', fieldOptions: { values: [{ option: 'y' }] } },
  {
    fieldLabel: 'CV',
    fieldType: 'file',
    multipleFiles: false,
    acceptFileTypes: '.pdf, png',
    requiredField: true,
  },
  { fieldName: 'from', fieldType: 'hiddenField', fieldValue: 'web' },
  { fieldType: 'html', elementName: 'note', html: '<p>Read <b>this</b> &amp; that</p><script>x</script>' },
  { fieldLabel: 'Your name' },
  { fieldLabel: 'Empty', fieldType: 'dropdown', fieldOptions: { values: [] } },
]

const node = (name: string, type: string, parameters: object, more: object = {}) => ({
  ...{ id: name, name, type: `n8n-nodes-base.${type}`, typeVersion: 2.3, position: [0, 0], parameters },
  ...more,
})

function importNodes(nodes: { name: string }[]) {
  const connections = Object.fromEntries(
    nodes
      .slice(1)
      .map(({ name }, i) => [nodes[i]!.name, { main: [[{ node: name, type: 'main', index: 0 }]] }]),
  )
  const { nodes: ours, problems, report } = importDocument({ name: 'w', nodes, connections })!
  const configs = ours.map(({ type, config }) => ({ type, config }))
  return { configs, problems, paths: report.problems.map(({ node: at, path }) => `${at} ${path}`) }
}

test("n8n's forms, with all kinds of fields, become ours; what differs is reported", () => {
  const options = {
    path: 'my form',
    buttonLabel: 'Go',
    customCss: 'a {}',
    respondWithOptions: { values: { respondWith: 'redirect', redirectUrl: 'https://example.com/x' } },
  }
  const { configs, problems, paths } = importNodes([
    node('Start', 'formTrigger', {
      ...{
        formTitle: 'Contact',
        formDescription: 'Line<br>two',
        formFields: { values },
        responseMode: 'lastNode',
      },
      options,
    }),
    node('Page', 'form', {
      formFields: { values: [{ fieldLabel: 'More' }] },
      ...{ limitWaitTime: true, resumeAmount: 2, resumeUnit: 'hours' },
      options: { formTitle: '=Hi {{ $json["Your name"] }}' },
    }),
    node('End', 'form', {
      operation: 'completion',
      completionTitle: 'Done',
      completionMessage: '={{ $json.More }}',
    }),
  ])
  expect(problems).toEqual([])
  const [trigger, page, end] = configs
  expect(trigger).toEqual({
    type: 'FORM_TRIGGER',
    config: {
      path: 'my-form',
      title: 'Contact',
      description: 'Line\ntwo',
      button: 'Go',
      access: 'none',
      shape: 'n8n',
      completion: { show: 'redirect', url: 'https://example.com/x', when: 'ended' },
      form: {
        properties: {
          'Your name': { type: 'string', placeholder: 'Ada', default: 'x { { y }}' },
          Age: { type: 'number', default: 7 },
          Mail: { type: 'string', format: 'email' },
          Day: { type: 'string', format: 'date' },
          Story: { type: 'string', format: 'multiline' },
          Key: { type: 'string', format: 'password' },
          Size: { enum: ['s', 'm'], default: 'm' },
          Old: { type: 'array', enum: ['a'], show: 'checkboxes' },
          Days: {
            type: 'array',
            enum: ['1', '2'],
            show: 'checkboxes',
            minItems: 1,
            maxItems: 2,
            default: ['2'],
          },
          One: { enum: ['y'], show: 'radio' },
          CV: { type: 'file', accept: ['.pdf', '.png'] },
          from: { type: 'string', show: 'hidden', default: 'web' },
          note: { show: 'note', description: 'Read this & that' },
          Empty: { type: 'string' },
        },
        required: ['Your name', 'CV'],
      },
    },
  })
  expect(page).toMatchObject({
    type: 'FORM',
    config: { timeoutMs: 7_200_000, title: expect.stringContaining('Your name'), shape: 'n8n' },
  })
  expect(end).toMatchObject({
    type: 'FORM',
    config: { completion: { show: 'text', title: 'Done', text: expect.stringContaining('More') } },
  })
  expect(paths.sort()).toEqual([
    'Page parameters.limitWaitTime',
    'Start parameters.formDescription',
    'Start parameters.formFields.values[12]',
    'Start parameters.formFields.values[13]',
    'Start parameters.formFields.values[14]',
    'Start parameters.options.customCss',
    'Start parameters.path',
  ])
})

test('a form that asked for a sign-in is never open to all', () => {
  const parameters = { path: 'a', formTitle: 'A', formFields: { values: [] }, authentication: 'basicAuth' }
  const { configs, paths } = importNodes([node('Start', 'formTrigger', parameters)])
  expect(configs[0]!.config).toMatchObject({ access: 'members' })
  expect(paths).toEqual(['Start parameters.authentication'])
  const own = importNodes([node('Start', 'formTrigger', { ...parameters, authentication: 'n8nUserAuth' })])
  expect(own.configs[0]!.config).toMatchObject({ access: 'members' })
  const led = importNodes([
    node('Start', 'formTrigger', { ...parameters, authentication: 'none' }),
    node('End', 'form', {
      operation: 'completion',
      respondWith: 'redirect',
      redirectUrl: 'javascript:alert(1)',
    }),
  ])
  expect(led.configs[1]!.config).toMatchObject({ completion: { show: 'text' } })
  expect(led.paths).toEqual(['End parameters.redirectUrl'])
})

test("n8n's MCP server is reported, with what to add for its tools", () => {
  const imported = importDocument({
    nodes: [
      {
        id: 'a',
        name: 'Server',
        type: '@n8n/n8n-nodes-langchain.mcpTrigger',
        typeVersion: 2,
        parameters: { path: 'x' },
        position: [0, 0],
      },
    ],
    connections: {},
  })
  expect(imported!.nodes).toMatchObject([{ type: 'MANUAL_TRIGGER' }])
  expect(imported!.report.problems).toMatchObject([
    { kind: 'trigger', message: expect.stringContaining('add one for each of these tools') },
  ])
})
