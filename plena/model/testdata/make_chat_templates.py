"""Makes chat_templates.json: templates in the manner of published models, and what Jinja2 3.1 makes of
them, set up as the Python package `transformers` does. usage: make_chat_templates.py > chat_templates.json"""

import json

from jinja2.sandbox import ImmutableSandboxedEnvironment


def raise_exception(message):
    raise ValueError(message)


environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
environment.globals["raise_exception"] = raise_exception
environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)

TEMPLATES = {
    "chatml": """{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system
You are helpful.<|im_end|>
' }}{% endif %}{{'<|im_start|>' + message['role'] + '
' + message['content'] + '<|im_end|>' + '
'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant
' }}{% endif %}""",
    "headers": """{{- bos_token }}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{#- System message #}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
""",
    "turns": """{{ bos_token }}{%- if messages[0]['role'] == 'system' -%}{%- set first_user_prefix = messages[0]['content'] + '

' -%}{%- set loop_messages = messages[1:] -%}{%- else -%}{%- set first_user_prefix = "" -%}{%- set loop_messages = messages -%}{%- endif -%}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception("Conversation roles must alternate user/assistant/user/assistant/...") }}
    {%- endif -%}
    {%- if (message['role'] == 'assistant') -%}
        {%- set role = "model" -%}
    {%- else -%}
        {%- set role = message['role'] -%}
    {%- endif -%}
    {{ '<start_of_turn>' + role + '
' + (first_user_prefix if loop.first else "") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}{{ item['text'] | trim }}{%- endfor -%}
    {%- else -%}
        {{ raise_exception("Invalid content type") }}
    {%- endif -%}
    {{ '<end_of_turn>
' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{'<start_of_turn>model
'}}
{%- endif -%}
""",
    "namespace": """{%- set ns = namespace(last=messages|length - 1, found=false) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if not ns.found and message.role == "user" and not(message.content.startswith('<tool>') and message.content.endswith('</tool>')) %}
        {%- set ns.found = true %}
        {%- set ns.last = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- set content = message.content %}
    {%- if message.role == "assistant" %}
        {%- if '</think>' in content %}
            {%- set reasoning = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
            {{- '<think>' ~ reasoning|length ~ '</think>' if loop.index0 > ns.last else '' }}
        {%- endif %}
    {%- endif %}
    {{- '<' ~ loop.index ~ message.role|upper ~ '>' + content + eos_token }}
{%- endfor %}
{%- if add_generation_prompt and enable_thinking is defined and enable_thinking is false %}
    {{- 'never' }}
{%- elif add_generation_prompt %}
<assistant>
  {%- endif %}""",
    "plain": """  {% if messages|length > 2 %}
many: {{ messages[-1]['content'] }}
  {% else %}
few {# of them #}{{ messages | length * 2 - 1 }}
  {% endif %}
{% for key, value in {'a': 1, 'b': none}.items() %}
{{ key }}={{ value }}{{ "," if not loop.last }}
{% endfor %}
{% for m in messages if m.role != 'system' %}
 {{ loop.index }}/{{ loop.length }} {{ m | tojson }} {{ m.name | default('-') }} {{ m['content'][:3] }} {{ 7 // 2 }} {{ -7 % 3 }} {{ ['x', 'y'] | join('+') }}
{% endfor %}
{{ ([1, 2] + [3]) | length == 3 }}{{ 'a' in ['a'] and not false or 1 }} end
""",
}

CHATS = [
    [{"role": "user", "content": "  Hi <b>\n"}],
    [{"role": "system", "content": " Be brief. "}, {"role": "user", "content": "What's 2 + 2?"}],
    [{"role": "user", "content": "One"}, {"role": "assistant", "content": "<think>\nhm\n</think>\n\nTwo é"},
     {"role": "user", "content": "Three"}],
    [{"role": "assistant", "content": "out of turn"}],
]

entries = []
for name, template in TEMPLATES.items():
    for chat in CHATS:
        for add in (True, False):
            entry = {"name": name, "template": template, "messages": chat, "add_generation_prompt": add}
            try:
                entry["prompt"] = environment.from_string(template).render(
                    messages=chat, add_generation_prompt=add, bos_token="<s>", eos_token="</s>")
            except Exception as error:
                entry["error"] = str(error)
            entries.append(entry)
print("[\n" + ",\n".join(json.dumps(e, ensure_ascii=False) for e in entries) + "\n]")
